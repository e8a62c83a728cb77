// PacketBuffer - counts the bytes of the packet buffer that are in use; the bytes themselves belong to the driver.
//
// Contract: take() and release() move the count; callers take only what fits.
// Invariants: (1) used() <= bytes(); (2) peak() is the largest used() so far.
// Threads: one owner. Time: none.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/assert.hpp"

namespace spinloom::spin {

class PacketBuffer {
 public:
  explicit PacketBuffer(uint64_t bytes) : bytes_(bytes) {}

  void take(uint64_t bytes) {
    SPL_ASSERT(bytes <= free(), bytes, " B beside ", used_, " of ", bytes_);
    used_ += bytes;
    peak_ = std::max(peak_, used_);
  }
  void release(uint64_t bytes) {
    SPL_ASSERT(bytes <= used_, bytes, " of ", used_);
    used_ -= bytes;
  }

  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  [[nodiscard]] uint64_t used() const { return used_; }
  [[nodiscard]] uint64_t free() const { return bytes_ - used_; }
  [[nodiscard]] uint64_t peak() const { return peak_; }

 private:
  uint64_t bytes_;
  uint64_t used_ = 0;
  uint64_t peak_ = 0;
};

}  // namespace spinloom::spin
