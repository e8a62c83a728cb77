// Memory of the driver for tests: what it has given out, and who may touch it.
//
// Contract: device() gives memory that nobody can read or write but the driver, so that a program, an MPI or a library
//   that takes it for memory of the host dies at once, unless FAKE_GPU_OPEN lets everybody; pinned() gives memory of
//   the host. find() says which allocation holds an address. Open makes device memory accessible as long as it lives.
//   Device memory may be opened by another process of the user by its handle, as CUDA IPC does.
// Invariants: (1) freed memory is found no more. Threads: any. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>

namespace fake {

struct Handle {
  int32_t process = 0;
  int32_t file = -1;
  uint64_t bytes = 0;
  uint64_t number = 0;
};

struct Allocation {
  uint64_t start = 0;
  size_t bytes = 0;  // the bytes that were asked for
  size_t mapped = 0;  // whole pages
  uint64_t number = 0;  // no other allocation has this
  int ordinal = 0;  // the device's number
  int file = -1;  // a file of device memory
  bool is_device = false;
  bool is_import = false;
  Handle from{};  // the handle of an import
  bool is_foreign = false;  // memory of the host that somebody else allocated
  void* window = nullptr;
};

class Memory {
 public:
  static Memory& all();

  // 0: there is no more.
  uint64_t device(size_t bytes, int ordinal);
  uint64_t pinned(size_t bytes);
  bool free(uint64_t start, bool is_device);
  // Memory of the host that is pinned where it lies.
  bool pin(uint64_t start, size_t bytes);
  bool unpin(uint64_t start);
  std::optional<Allocation> find(uint64_t address);
  // Opens the device memory that holds an address, until shut() closes it, unless somebody has it Open.
  std::optional<Allocation> let(uint64_t address);
  void shut(const Allocation& one);
  std::optional<Handle> handle_of(uint64_t start);
  // `stale`: the place of that memory is mapped already, from before it was freed and allocated again.
  uint64_t open(const Handle& handle, bool& stale);
  size_t bytes_left();
  // Returns which allocation holds an address, and which of the last `freed_max` that were freed held it. Handlers of
  // signals may call this: it does not wait. `is_known` is false if another thread has the lock.
  struct Past {
    bool is_known = false;
    bool is_open = false;
    std::optional<Allocation> now;
    std::optional<Allocation> freed;
  };
  Past past_of(uint64_t address);
  // Maps an allocation's bytes a second time, where the test itself may read them at any time until they are freed.
  void* window(uint64_t start);

 private:
  friend class Open;
  uint64_t keep(Allocation made);
  void protect(int access);

  std::recursive_mutex mutex_;
  std::map<uint64_t, Allocation> allocations_;
  uint64_t next_number_ = 1;
  static constexpr size_t freed_max = 4096;
  std::deque<Allocation> freed_;  // the latest first
  size_t used_ = 0;
  int open_ = 0;
};

class Open {
 public:
  Open();
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;
  ~Open();
};

}  // namespace fake
