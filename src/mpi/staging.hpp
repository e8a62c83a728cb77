// Staging - packed bytes of messages under way, in memory that the peers map.
//
// Contract: take() returns a buffer for at least `bytes` bytes, or null if that would exceed the limit; give() takes it
//   back. The buffer that was given back last is taken first, because it is warm.
// Invariants: (1) buffers lie in process_heap(); (2) their sizes are powers of two, and all together stay within the
//   limit. Threads: the caller's lock. Time: none.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace spinloom::mpi {

class Staging {
 public:
  struct Buffer {
    uint8_t* start = nullptr;
    uint32_t order = 0;  // it has 2^order bytes
  };

  void limit(int64_t bytes) { left_ = bytes; }
  // What a buffer for `bytes` bytes takes of the limit.
  [[nodiscard]] static uint64_t whole(uint64_t bytes);
  [[nodiscard]] Buffer take(uint64_t bytes);
  void give(const Buffer& buffer) { free_[buffer.order].push_back(buffer.start); }

 private:
  static constexpr uint32_t orders = 48;
  [[nodiscard]] bool make_room(uint64_t bytes);

  int64_t left_ = 0;  // bytes that may still be allocated
  std::array<std::vector<uint8_t*>, orders> free_;
};

}  // namespace spinloom::mpi
