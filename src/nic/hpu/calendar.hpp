// Calendar - which cycles of a group of equal pipelined units are taken.
//
// Contract: reserve(earliest) takes one unit in the first cycle >= earliest in which one is free, and returns that
//   cycle. Instructions reserve in program order, so an older instruction always has priority. A younger instruction
//   whose operands are ready may still fill an earlier cycle, as in an out-of-order issue queue.
// Invariants:
//   1. bit c of level[k] is set when at least k + 1 units are taken in cycle c (so level[k] is a subset of
//      level[k - 1] and the last level says "full");
//   2. a ring of 64 blocks of 64 cycles: reservations more than 4,096 cycles apart forget the older one. A span that
//      long exists only across the answer of a call; units are idle on the far side of it.
// Threads: one owner. Time: HPU cycles.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace spinloom::hpu {

class Calendar {
 public:
  explicit Calendar(uint32_t units) : units_(units), last_(units - 1) {}

  // The first cycle >= earliest with a free unit.
  [[nodiscard]] uint64_t first_free(uint64_t earliest) const {
    for (;;) {
      const Block& block = blocks_[index_of(earliest)];
      if (block.tag != earliest / block_cycles) return earliest;
      const uint64_t free = ~block.level[last_] & (~uint64_t{0} << (earliest % block_cycles));
      if (free != 0) return earliest / block_cycles * block_cycles + static_cast<uint64_t>(std::countr_zero(free));
      earliest = (earliest / block_cycles + 1) * block_cycles;
    }
  }

  uint64_t reserve(uint64_t earliest) {
    for (;;) {
      Block& block = claim(earliest);
      const uint64_t free = ~block.level[last_] & (~uint64_t{0} << (earliest % block_cycles));
      if (free != 0) [[likely]] {
        take(block, free & -free);
        return earliest / block_cycles * block_cycles + static_cast<uint64_t>(std::countr_zero(free));
      }
      earliest = (earliest / block_cycles + 1) * block_cycles;
    }
  }

  // Reserves a unit for `cycles` cycles in a row, for an operation that is not pipelined.
  uint64_t reserve_run(uint64_t earliest, uint32_t cycles) {
    uint64_t start = first_free(earliest);
    for (uint64_t i = 1; i < cycles; ++i) {
      if (const uint64_t next = first_free(start + i); next != start + i) {
        start = next;
        i = 0;
      }
    }
    for (uint64_t i = 0; i < cycles; ++i) take(claim(start + i), uint64_t{1} << ((start + i) % block_cycles));
    return start;
  }

 private:
  static constexpr uint64_t block_cycles = 64;
  static constexpr uint64_t block_count = 64;
  static constexpr uint32_t units_max = 4;

  // Padded to a power of two, so that finding a block is a shift.
  struct alignas(64) Block {
    uint64_t tag = ~uint64_t{0};  // cycle / block_cycles of the block's cycles
    std::array<uint64_t, units_max> level{};
  };

  static size_t index_of(uint64_t cycle) { return cycle / block_cycles % block_count; }

  Block& claim(uint64_t cycle) {
    Block& block = blocks_[index_of(cycle)];
    if (block.tag != cycle / block_cycles) [[unlikely]] {
      block.tag = cycle / block_cycles;
      block.level.fill(0);
    }
    return block;
  }

  // Sets the bit in the first level where it is clear.
  void take(Block& block, uint64_t bit) const {
    const uint64_t first = block.level[0] & bit;
    block.level[0] |= bit;
    bit = first;
    for (uint32_t k = 1; k < units_; ++k) {
      const uint64_t already = block.level[k] & bit;
      block.level[k] |= bit;
      bit = already;
    }
  }

  uint32_t units_;
  uint32_t last_;
  std::array<Block, block_count> blocks_{};
};

}  // namespace spinloom::hpu
