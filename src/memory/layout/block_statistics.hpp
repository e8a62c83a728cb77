// BlockStatistics - the number of blocks of a message and their lengths, which decide how fast it can move.
//
// Contract: block_statistics() walks the blocks of `count` elements once, at most limits::message_blocks_max of them
//   (Code::exhausted beyond). A bin of the histogram holds blocks of [2^k, 2^(k+1)) bytes. `forward_blocks` counts
//   blocks that begin behind the end of the one before, in packed order.
// Invariants: the bins' blocks add up to `blocks`, their bytes to `bytes`.
// Threads: pure. Time: none.
#pragma once

#include <array>
#include <cstdint>

#include "base/result.hpp"
#include "memory/layout/blob.hpp"

namespace spinloom::layout {

struct BlockStatistics {
  struct Bin {
    int64_t blocks = 0;
    int64_t bytes = 0;
  };

  int64_t blocks = 0;
  int64_t bytes = 0;
  int64_t bytes_min = 0;  // bytes of the shortest block
  int64_t bytes_max = 0;  // bytes of the longest block
  int64_t forward_blocks = 0;
  std::array<Bin, 63> bins{};
};

Result<BlockStatistics> block_statistics(const Blob& blob, int64_t count);

}  // namespace spinloom::layout
