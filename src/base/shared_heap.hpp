// SharedHeap - large blocks of memory that other processes can map: one region over a file without a name.
//
// Contract: open() reserves the region once. allocate() hands out blocks of whole granules, release() takes them back.
//   location() tells a peer how to find the file, and what the peer must check there. process_heap() is the SharedHeap
//   that a program or library uses.
// Invariants: (1) a page of a block takes memory only when it is touched; the pages of released blocks go back to the
//   system once `idle_bytes` of them have gathered, unless the heap is private; (2) the file cannot shrink, so that a
//   process that has it mapped never reads beyond its end; (3) a forked child has the blocks in a region of its own:
//   neither parent nor child sees what the other writes. That costs a copy of the blocks. Where the copy fails, or
//   would take more than half of the free memory, the child's heap is private: then the child sees what its parent
//   writes later to pages that the child has not written itself, and the parent never sees what the child writes. If
//   the program has closed the descriptor, too, the child can only read the blocks; (4) nothing here allocates by
//   malloc, because malloc may be built on it; (5) before a system call names the file by its descriptor, the
//   descriptor is checked to be still that file, because programs close descriptors that they do not know; (6) peers
//   are never shown a block over which the program has mapped other memory, where replaced() was told of it. When such
//   a block is released, the file is mapped there again, or fresh memory if the heap is private; where that fails, the
//   block stays in use for ever.
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

  struct Location {
    uint64_t bytes = 0;  // 0: this process has no heap that a peer could map
    uint64_t base = 0;   // address of the region in this process
    uint64_t inode = 0;  // the file's, by which a peer checks that it has opened the right file
    int file = -1;       // this process's descriptor of the file
  };

  constexpr SharedHeap() = default;
  SharedHeap(const SharedHeap&) = delete;
  SharedHeap& operator=(const SharedHeap&) = delete;

  // Reserves the region at the first call. Returns 0, or the errno of that first attempt.
  [[nodiscard]] int open();
  // Returns a block of at least `bytes` bytes, zeroed if `zeroed`. Returns null if `bytes` is 0, if `alignment` exceeds
  // alignment_max, if there is no room, or if open() fails. `alignment` is a power of two.
  [[nodiscard]] void* allocate(size_t bytes, size_t alignment = granule_bytes, bool zeroed = false);
  // Returns false if no block begins there.
  [[nodiscard]] bool release(void* block);
  // Moves the end of the block, in place. False: no block begins there, or it cannot become that long or that short
  // (RangeTable::resize()).
  [[nodiscard]] bool resize(void* block, size_t bytes);
  // Returns the size of the block that begins at `block`; 0 if none does.
  [[nodiscard]] size_t size_of(const void* block);

  // True if all of these bytes lie in the region.
  [[nodiscard]] bool contains(const void* start, size_t bytes) const {
    const uint64_t base = base_.load(std::memory_order_acquire);
    const uint64_t offset = reinterpret_cast<uint64_t>(start) - base;
    return base != 0 && offset < bytes_ && bytes <= bytes_ - offset;
  }
  // True if peers see all of these bytes as this process does. In a private heap, no peer sees any of them: location()
  // returns no bytes then.
  [[nodiscard]] bool is_shared(const void* start, size_t bytes);
  // True if mark_replaced() or mark_moved() has ever named bytes of the heap.
  [[nodiscard]] bool has_replaced() const {
    return replaced_first_.load(std::memory_order_acquire) != RangeTable::none;
  }
  // Counts into `word`, which outlives the process or is named by forget(), whenever one of them does from now on.
  // False: too many words are watched already.
  [[nodiscard]] bool count_replacements(std::atomic<uint64_t>& word);
  void forget(const std::atomic<uint64_t>& word);
  // To be called when the program has mapped other memory over these bytes, or has unmapped them.
  void mark_replaced(const void* start, size_t bytes) { mark(start, bytes, false); }
  // To be called when the program has moved the memory there to another address (mremap). Its block is pinned: it stays
  // in use for ever, because others would get the same memory.
  void mark_moved(const void* start, size_t bytes) { mark(start, bytes, true); }
  // Makes the heap's shared memory there read as zeros; other memory that is mapped there stays as it is. This has no
  // effect if the bytes do not all lie in the heap, on a private heap, where a block is pinned, or if the program has
  // closed the descriptor.
  void punch_hole(const void* start, size_t bytes);
  [[nodiscard]] Location location();
  [[nodiscard]] size_t used_bytes();
  // Registers the handlers of fork. open() calls this; a library that serves malloc calls it earlier, so that these
  // handlers are registered before those of other libraries.
  void watch_forks();

 private:
  class Lock;

  void mark(const void* start, size_t bytes, bool moved);

  [[nodiscard]] int reserve();
  [[nodiscard]] int make_file() const;
  [[nodiscard]] bool is_ours(int file) const;
  [[nodiscard]] bool discard(uint32_t first, uint32_t count) const;
  [[nodiscard]] uint8_t* address_of(uint32_t granule) const;
  [[nodiscard]] uint32_t granule_of(const void* block) const;
  [[nodiscard]] bool map(uint32_t first, uint32_t end, int flags, int file);
  [[nodiscard]] int copy_blocks() const;
  [[nodiscard]] bool map_around_replaced(int flags, int file);
  [[nodiscard]] bool copy_data(int to, uint64_t begin, uint64_t end, bool from_file) const;
  void remap_remaining(uint64_t inode, int flags, int file) const;
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();
  void adopt_file(int file);

  pthread_mutex_t mutex_ = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;  // other libraries' fork handlers may allocate
  std::atomic<uint64_t> base_{0};
  uint64_t bytes_ = 0;
  uint64_t inode_ = 0;
  int file_ = -1;
  int child_file_ = -1;  // the file of the child, while a fork is under way
  int open_errno_ = 0;
  bool watches_forks_ = false;
  // The blocks that have or had other memory over them lie between these granules. None: the first is behind the last.
  std::atomic<uint32_t> replaced_first_{RangeTable::none};
  std::atomic<uint32_t> replaced_last_{0};
  static constexpr size_t replacement_words_max = 64;
  std::atomic<uint64_t>* replacement_words_[replacement_words_max] = {};
  bool is_mapping_ = false;  // this heap itself maps memory, which replaces nothing
  bool is_private_ = false;  // no peer can map the blocks, and free granules may hold any bytes
  RangeTable ranges_;
};

// The heap that libspinloom-heap.so serves malloc from, where that library is loaded; otherwise a heap that this
// program or library has for itself.
[[nodiscard]] SharedHeap& process_heap();
[[nodiscard]] bool process_heap_is_malloc();
// The symbol by which libraries of one process find the same heap. Its number changes when the layout of SharedHeap
// does.
#define SPINLOOM_PROCESS_HEAP spinloom_process_heap_3

}  // namespace spinloom
