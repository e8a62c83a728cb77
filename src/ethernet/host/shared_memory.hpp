// SharedMemory - memory that two processes map, by a file descriptor that one hands to the other.
//
// Contract: create() makes zeroed memory; map() maps what a descriptor names, which must be at least `bytes` long. The
//   memory stays as long as one of the two has it.
// Threads: plain; the bytes are whoever's. Time: none.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.hpp"

namespace spinloom::host {

class SharedMemory {
 public:
  static Result<SharedMemory> create(uint64_t bytes);
  // Owns the descriptor from now on, and closes it if the mapping fails.
  static Result<SharedMemory> map(int descriptor, uint64_t bytes);
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept { *this = std::move(other); }
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();

  [[nodiscard]] std::span<uint8_t> bytes() const { return {start_, length_}; }
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  uint8_t* start_ = nullptr;
  uint64_t length_ = 0;
  int descriptor_ = -1;
};

}  // namespace spinloom::host
