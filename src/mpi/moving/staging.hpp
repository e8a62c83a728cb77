// Staging - packed bytes of messages under way, in memory that the peers map.
//
// Contract: take() returns a buffer for at least `bytes` bytes, or null if that would exceed the limit; give() takes it
//   back. The buffer that was given back longest ago is taken first, once others of `apart_bytes` have been used since:
//   on Intel, writing lines that the receiver has just read takes twice as long while they are in the writer's nearest
//   cache, too. reserve() returns a buffer for a message that is packed only if its receiver does not come. Pages that
//   nobody writes take no memory, so long ones have a limit of their own, `reserves` times as large, and are not kept.
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
    uint32_t order = 0;  // it has 2^order bytes
    bool reserved = false;
  };

  static constexpr int64_t reserves = 16;

  void limit(int64_t bytes) {
    left_ = bytes;
    left_to_reserve_ = reserves * bytes;
  }
  // The bytes of the limit that a buffer for `bytes` bytes takes.
  [[nodiscard]] static uint64_t whole(uint64_t bytes);
  [[nodiscard]] Buffer take(uint64_t bytes);
  [[nodiscard]] Buffer reserve(uint64_t bytes);
  void give(const Buffer& buffer);

 private:
  static constexpr uint32_t orders = 48;
  static constexpr uint64_t apart_bytes = 128 << 10;  // more than twice a nearest cache
  [[nodiscard]] bool make_room(uint64_t bytes);

  int64_t left_ = 0;  // bytes that may still be allocated
  int64_t left_to_reserve_ = 0;
  std::array<std::deque<uint8_t*>, orders> free_;
};

}  // namespace spinloom::mpi
