#include "memory/layout/block_statistics.hpp"

#include <algorithm>
#include <bit>

#include "base/limits.hpp"
#include "memory/layout/blocks.hpp"

namespace spinloom::layout {

Result<BlockStatistics> block_statistics(const Blob& blob, int64_t count) {
  BlockStatistics out;
  int64_t end = 0;
  SPL_TRY(for_each_block(blob, count, [&](const Piece& block) {
    out.bytes_min = out.blocks == 0 ? block.bytes : std::min(out.bytes_min, block.bytes);
    out.bytes_max = std::max(out.bytes_max, block.bytes);
    if (out.blocks > 0 && block.offset >= end) ++out.forward_blocks;
    end = block.offset + block.bytes;
    ++out.blocks;
    out.bytes += block.bytes;
    BlockStatistics::Bin& bin = out.bins[static_cast<size_t>(std::bit_width(static_cast<uint64_t>(block.bytes)) - 1)];
    ++bin.blocks;
    bin.bytes += block.bytes;
    return out.blocks <= limits::message_blocks_max;
  }));
  if (out.blocks > limits::message_blocks_max) {
    return fail(Code::exhausted, "the message has more than ", limits::message_blocks_max,
                " blocks (message_blocks_max); take fewer elements");
  }
  return out;
}

}  // namespace spinloom::layout
