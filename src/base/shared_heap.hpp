// SharedHeap - large blocks of memory that other processes may map: one region over a file without a name.
//
// Contract: open() reserves the region once; allocate() hands out blocks of whole granules, release() takes them back.
//   place() says where a peer finds the file and what it must find there. A program has one: process_heap().
// Invariants: (1) a block's pages come when they are touched; those of released blocks go back to the system once
//   `idle_bytes` have gathered; (2) the file cannot shrink: who has it mapped never reads behind its end; (3) a forked
//   child has the blocks in a region of its own: what one of the two writes, the other does not see. That costs a copy
//   of what they hold; where that is more than half of the memory that is free, the child still sees what its parent
//   writes later, and never the other way round; (4) nothing here allocates: malloc may be built on it; (5) no system
//   call names the file by its descriptor without looking whether it is still the file: programs close what they like.
// Threads: any. Time: none.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/range_table.hpp"

namespace spinloom {

class SharedHeap {
 public:
  static constexpr size_t granule_bytes = 64 << 10;
  static constexpr size_t alignment_max = 2 << 20;
  static constexpr size_t region_bytes_max = size_t{64} << 30;
  static constexpr size_t region_bytes_min = size_t{1} << 28;
  static constexpr size_t idle_bytes = 64 << 20;

  struct Place {
    uint64_t bytes = 0;  // 0: there is none
    uint64_t base = 0;
    uint64_t inode = 0;
    int file = -1;
  };

  constexpr SharedHeap() = default;
  SharedHeap(const SharedHeap&) = delete;
  SharedHeap& operator=(const SharedHeap&) = delete;

  // 0, or the errno of what the system refuses; asked once.
  [[nodiscard]] int open();
  // A block of at least so many bytes, zeroed if asked for; null: there is no room, or open() fails.
  [[nodiscard]] void* allocate(size_t bytes, size_t alignment = granule_bytes, bool zeroed = false);
  // False: no block begins there.
  [[nodiscard]] bool release(void* block);
  [[nodiscard]] bool resize(void* block, size_t bytes);
  // Of the block that begins there, or 0.
  [[nodiscard]] size_t size_of(const void* block);

  // Whether all of these bytes lie in the region.
  [[nodiscard]] bool holds(const void* start, size_t bytes) const {
    const uint64_t base = base_.load(std::memory_order_acquire);
    const uint64_t offset = reinterpret_cast<uint64_t>(start) - base;
    return base != 0 && offset < bytes_ && bytes <= bytes_ - offset;
  }
  [[nodiscard]] Place place();
  [[nodiscard]] size_t used_bytes();
  // Forks are seen from open() on; a library that serves malloc asks for it before others have their say.
  void watch_forks();

 private:
  class Lock;

  [[nodiscard]] int make();
  [[nodiscard]] int make_file() const;
  [[nodiscard]] bool is_ours(int file) const;
  [[nodiscard]] bool discard(uint32_t first, uint32_t count) const;
  [[nodiscard]] uint8_t* at(uint32_t granule) const;
  [[nodiscard]] uint32_t granule_of(const void* block) const;
  [[nodiscard]] int copy_of_blocks() const;
  [[nodiscard]] bool copy_data(int to, uint64_t begin, uint64_t end) const;
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();
  void keep(int file);

  pthread_mutex_t mutex_ = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;  // handlers of a fork may allocate
  std::atomic<uint64_t> base_{0};
  uint64_t bytes_ = 0;
  uint64_t inode_ = 0;
  int file_ = -1;
  int heir_ = -1;  // during a fork: the child's file
  int error_ = 0;
  bool watches_ = false;
  bool private_ = false;  // not in a file of ours, and never zeroed
  RangeTable ranges_;
};

// The one that libspinloom-heap.so serves malloc from, where that is loaded; else this program's or library's own.
[[nodiscard]] SharedHeap& process_heap();
[[nodiscard]] bool process_heap_is_malloc();
// How they find each other; the number changes with the meaning of the object's bytes.
#define SPINLOOM_PROCESS_HEAP spinloom_process_heap_1

}  // namespace spinloom
