// NicMemory - allocates the NIC's memory; the bytes themselves belong to the driver.
//
// Contract: aligned first fit; freeing joins neighbours. A request that finds no room is Code::exhausted, with the
//   setting that enlarges the memory.
// Invariants: (1) blocks never overlap; (2) used() is the sum of the blocks; (3) when nothing is
//   allocated the whole memory is one free block.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <map>

#include "base/result.hpp"

namespace spinloom::spin {

class NicMemory {
 public:
  explicit NicMemory(uint64_t bytes);

  // The offset of a block of `bytes` > 0; `align` is a power of two.
  [[nodiscard]] Result<uint64_t> allocate(uint64_t bytes, uint64_t align);
  [[nodiscard]] Status free(uint64_t offset);
  // True if [offset, offset + length) lies inside one allocated block.
  [[nodiscard]] bool holds(uint64_t offset, uint64_t length) const;
  // True if the block that starts at `block` holds any byte of the range.
  [[nodiscard]] bool overlaps(uint64_t block, uint64_t offset, uint64_t length) const;

  [[nodiscard]] uint64_t used() const { return used_; }
  [[nodiscard]] uint64_t peak() const { return peak_; }
  [[nodiscard]] uint64_t largest_free() const;

  // Throws InternalError if an invariant is broken. For tests: looks at all blocks.
  void check_invariants() const;

 private:
  uint64_t bytes_;
  uint64_t used_ = 0;
  uint64_t peak_ = 0;
  std::map<uint64_t, uint64_t> free_;       // offset -> length
  std::map<uint64_t, uint64_t> allocated_;  // offset -> length
};

}  // namespace spinloom::spin
