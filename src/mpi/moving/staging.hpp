// Staging - buffers for the packed bytes of messages under way, in memory that the peers map.
//
// Contract: take() returns a buffer for at least `bytes` bytes, or null if the limit or the heap leaves none;
//   give_back() takes it back. take() reuses the buffer that was given back longest ago if idle ones of its size make
//   up `apart_bytes`, or if no new one can be allocated. On Intel, writing lines that the receiver has just read takes
//   twice as long while they are in the writer's nearest cache, too. reserve() returns a buffer for a message that is
//   packed only if its receiver does not come. Pages that are not written take no memory, so reserved buffers from 1
//   MiB on have a limit of their own, `reserve_factor` times as large, and are not kept.
// Invariants: (1) buffers lie in process_heap(); (2) their sizes are powers of two, and all together stay within the
//   limits.
// Threads: the caller's lock. Time: none.
#pragma once

#include <array>
#include <cstdint>
#include <deque>

namespace spinloom::mpi {

class Staging {
 public:
  struct Buffer {
    uint8_t* start = nullptr;
    uint32_t order = 0;  // the buffer has 2^order bytes
    bool is_reserved = false;  // counts in the limit of reserve()
  };

  static constexpr int64_t reserve_factor = 16;

  void set_limit(int64_t bytes) {
    left_bytes_ = bytes;
    left_to_reserve_bytes_ = reserve_factor * bytes;
  }
  // Returns how much of the limit a buffer for `bytes` bytes takes.
  [[nodiscard]] static uint64_t charged_bytes(uint64_t bytes);
  [[nodiscard]] Buffer take(uint64_t bytes);
  [[nodiscard]] Buffer reserve(uint64_t bytes);
  void give_back(const Buffer& buffer);

 private:
  static constexpr uint32_t orders = 48;
  static constexpr uint64_t apart_bytes = 128 << 10;  // more than twice a nearest cache
  [[nodiscard]] bool make_room(uint64_t bytes);

  int64_t left_bytes_ = 0;  // bytes that may still be allocated
  int64_t left_to_reserve_bytes_ = 0;
  std::array<std::deque<uint8_t*>, orders> free_;
};

}  // namespace spinloom::mpi
