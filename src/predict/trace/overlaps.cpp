#include "predict/trace/overlaps.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/limits.hpp"
#include "memory/layout/blob.hpp"
#include "memory/layout/blocks.hpp"

namespace spinloom::trace {
namespace {

struct ByteRange {
  uint64_t first = 0;
  uint64_t end = 0;
};

class ByteRanges {
 public:
  // Returns false if the bytes of the block are not known, or are too many pieces.
  [[nodiscard]] bool add(const RankTrace& trace, const Block& block) {
    if (block.count <= 0) return true;
    if (block.type == none || block.address == nowhere) return false;
    const TypeEntry& type = trace.types[block.type];
    if (type.size_bytes == 0) return true;
    if (type.blob.empty()) {
      if (type.size_bytes != type.extent_bytes) return false;
      add_range(block.address, static_cast<uint64_t>(block.count) * static_cast<uint64_t>(type.size_bytes));
      return true;
    }
    const auto blob = layout::Blob::validate(type.blob);
    if (!blob) return false;
    bool fits = true;
    const auto visit = [&](const layout::Piece& piece) {
      add_range(block.address + static_cast<uint64_t>(piece.offset), static_cast<uint64_t>(piece.bytes));
      fits = std::cmp_less_equal(ranges_.size(), limits::message_blocks_max);
      return fits;
    };
    return layout::for_each_block(*blob, block.count, visit).ok() && fits;
  }

  // Returns how many bytes lie in more than one range: each time but the first.
  [[nodiscard]] int64_t common_bytes() {
    std::ranges::sort(ranges_, {}, &ByteRange::first);
    int64_t sum = 0;
    uint64_t end = 0;
    for (const ByteRange& range : ranges_) {
      if (range.first < end) sum += static_cast<int64_t>(std::min(end, range.end) - range.first);
      end = std::max(end, range.end);
    }
    return sum;
  }

 private:
  void add_range(uint64_t first, uint64_t bytes) { ranges_.push_back({first, first + bytes}); }
  std::vector<ByteRange> ranges_;
};

}  // namespace

std::optional<int64_t> common_bytes(const RankTrace& trace, std::span<const Block> blocks) {
  ByteRanges ranges;
  for (const Block& block : blocks) {
    if (!ranges.add(trace, block)) return std::nullopt;
  }
  return ranges.common_bytes();
}

}  // namespace spinloom::trace
