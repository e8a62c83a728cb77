// LineWalk - counts the level of a host's caches that each cache line of a pack, unpack or copy comes from.
//
// Contract: walk_lines() follows a message as a copy loop does, in the given order, through a chain of modelled caches:
//   once to warm them, once to count. Pages of 4 KiB lie anywhere in physical memory, and page addresses go through
//   caches in the same way. Each line is counted under the last level that lacks it; a line that the first level has is
//   only an access. `next` lines follow the side's last line, `strided` lines repeat its last step but for one line,
//   `scattered` lines follow no rule. A message of more than limits::message_blocks_max blocks is an Error.
// Invariants: pure counting: the result depends on no time and on nothing of the machine that runs it.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "memory/layout/blob.hpp"

namespace spinloom::app {

struct CacheLevel {
  int64_t bytes = 0;
  int64_t ways = 0;
};

struct LineWalk {
  struct LineCounts {
    uint64_t next = 0;
    uint64_t strided = 0;
    uint64_t scattered = 0;
  };
  uint64_t accesses = 0;
  std::vector<uint64_t> pages;  // pages missed in each level of the page cache (TLB), the last level last
  std::vector<LineCounts>
      levels;  // [0]: lines that the first level lacks and the second has; the last: lines from memory
};

// packed: blocks in packed order. memory: blocks as they lie in memory, with the packed side from front to back; this
// models a transposing kernel that goes by tiles and meets every line once.
enum class WalkOrder : uint8_t { packed, memory };

enum class Movement : uint8_t { pack, unpack, copy };  // copy: to the same type in other memory
[[nodiscard]] Result<Movement> movement_named(const std::string& name);

[[nodiscard]] Result<LineWalk> walk_lines(const layout::Blob& blob, int64_t count, Movement movement,
                                          const std::vector<CacheLevel>& levels,
                                          const std::vector<CacheLevel>& page_levels,
                                          WalkOrder order = WalkOrder::packed);

}  // namespace spinloom::app
