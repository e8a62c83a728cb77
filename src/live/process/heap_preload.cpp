// libspinloom-heap.so - preloaded into a program, serves the large blocks of malloc from the heap that peers map. All
// other blocks come from the next malloc.
//
// Contract: malloc and its family, as the C library documents them. A block of `served_bytes` or more comes from the
//   heap, as long as the heap has room. The address of a block says whether it is the heap's. Blocks of malloc begin as
//   zeros for code that SPINLOOM_ZEROED_BLOCKS has named, if they are as long as a list of iovecs.
// Invariants: (1) nothing here needs the C++ run-time library, so that programs of any language can use it; (2) what is
//   allocated while the next malloc is looked up comes from a small buffer here and is never freed.
// Threads: any. Time: none.
#include <dlfcn.h>
#include <malloc.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/shared_heap.hpp"
#include "base/zeroed_blocks.hpp"

namespace {

constexpr size_t served_bytes = spinloom::SharedHeap::granule_bytes;

constinit spinloom::SharedHeap heap;

// Serves allocations while the next malloc is looked up.
class Early {
 public:
  void* allocate(size_t bytes) {
    const size_t rounded = (bytes + 2 * unit - 1) / unit * unit;  // room for the length in front
    const size_t at = used_.fetch_add(rounded);
    if (bytes > sizeof memory_ || at + rounded > sizeof memory_) return nullptr;
    std::memcpy(memory_ + at, &bytes, sizeof bytes);
    return memory_ + at + unit;
  }
  [[nodiscard]] bool holds(const void* start) const {
    return reinterpret_cast<uintptr_t>(start) - reinterpret_cast<uintptr_t>(memory_) < sizeof memory_;
  }
  static size_t size_of(const void* block) {
    size_t bytes = 0;
    std::memcpy(&bytes, static_cast<const uint8_t*>(block) - unit, sizeof bytes);
    return bytes;
  }

 private:
  static constexpr size_t unit = 16;
  alignas(unit) uint8_t memory_[16 << 10] = {};
  std::atomic<size_t> used_{0};
};
constinit Early early;

struct Next {
  void* (*malloc)(size_t);
  void* (*calloc)(size_t, size_t);
  void* (*realloc)(void*, size_t);
  void* (*memalign)(size_t, size_t);
  void* (*aligned_alloc)(size_t, size_t);
  int (*posix_memalign)(void**, size_t, size_t);
  void (*free)(void*);
  size_t (*malloc_usable_size)(void*);
};

template <class Function>
void look_up(Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

// The next malloc and its family, or null until they are known. The first call of a process looks them up, before the
// process has threads.
const Next* next() {
  static constinit Next functions{};
  static constinit std::atomic<int> state{0};  // 1: being looked up, 2: found
  if (state.load(std::memory_order_acquire) == 2) return &functions;
  int nobody = 0;
  if (!state.compare_exchange_strong(nobody, 1)) return nobody == 2 ? &functions : nullptr;
  look_up(functions.malloc, "malloc");
  look_up(functions.calloc, "calloc");
  look_up(functions.realloc, "realloc");
  look_up(functions.memalign, "memalign");
  look_up(functions.aligned_alloc, "aligned_alloc");
  look_up(functions.posix_memalign, "posix_memalign");
  look_up(functions.free, "free");
  look_up(functions.malloc_usable_size, "malloc_usable_size");
  state.store(2, std::memory_order_release);
  return &functions;
}

// Restores errno, for programs that look at it even after a successful call.
class KeepErrno {
 public:
  ~KeepErrno() { errno = kept_; }

 private:
  int kept_ = errno;
};

void* from_heap(size_t bytes, size_t alignment = 1, bool zeroed = false) {
  if (bytes < served_bytes || !std::has_single_bit(alignment)) return nullptr;
  const KeepErrno keep;
  return heap.allocate(bytes, alignment, zeroed);
}

// The code whose blocks begin as zeros; no bytes: none.
struct ZeroedCode {
  std::atomic<uint64_t> first{0};
  std::atomic<uint64_t> bytes{0};
  [[nodiscard]] bool holds(const void* caller) const {
    const uint64_t all = bytes.load(std::memory_order_acquire);
    return reinterpret_cast<uint64_t>(caller) - first.load(std::memory_order_relaxed) < all;
  }
};
constinit ZeroedCode zeroed_code;

[[noreturn]] void die(const char* line) {
  if (write(STDERR_FILENO, line, std::strlen(line)) < 0) _exit(134);
  abort();
}

size_t size_of(void* block) {
  if (heap.contains(block, 1)) return heap.size_of(block);
  if (early.holds(block)) return Early::size_of(block);
  return next()->malloc_usable_size(block);
}

[[gnu::constructor]] void begin() {
  next();
  heap.watch_forks();
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

spinloom::SharedHeap* SPINLOOM_PROCESS_HEAP() { return &heap; }

void SPINLOOM_ZEROED_BLOCKS(const void* code, size_t bytes) {
  zeroed_code.bytes.store(0, std::memory_order_relaxed);
  zeroed_code.first.store(reinterpret_cast<uint64_t>(code), std::memory_order_release);
  zeroed_code.bytes.store(bytes, std::memory_order_release);
}

void* malloc(size_t bytes) {
  if (bytes % sizeof(iovec) == 0 && zeroed_code.holds(__builtin_return_address(0))) [[unlikely]]
    return calloc(1, bytes);
  if (void* const block = from_heap(bytes)) return block;
  const Next* const allocator = next();
  return allocator != nullptr ? allocator->malloc(bytes) : early.allocate(bytes);
}

void* calloc(size_t count, size_t each) {
  size_t bytes = 0;
  if (!__builtin_mul_overflow(count, each, &bytes)) {
    if (void* const block = from_heap(bytes, 1, true)) return block;
  }
  const Next* const allocator = next();
  return allocator != nullptr ? allocator->calloc(count, each) : early.allocate(bytes);
}

void free(void* block) {
  if (block == nullptr || early.holds(block)) return;
  if (!heap.contains(block, 1)) return next()->free(block);
  const KeepErrno keep;
  if (!heap.release(block)) die("libspinloom-heap: free of what is no block, or not any more\n");
}

void* realloc(void* block, size_t bytes) {
  if (block == nullptr) return malloc(bytes);
  const bool is_heaps = heap.contains(block, 1);
  if (!is_heaps && !early.holds(block) && bytes < served_bytes) return next()->realloc(block, bytes);
  if (is_heaps && bytes == 0) {
    free(block);
    return nullptr;
  }
  if (is_heaps && bytes >= served_bytes && heap.resize(block, bytes)) return block;
  void* const moved = malloc(bytes);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, block, std::min(bytes, size_of(block)));
  free(block);
  return moved;
}

void* memalign(size_t alignment, size_t bytes) {
  if (void* const block = from_heap(bytes, alignment)) return block;
  return next()->memalign(alignment, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) {
  if (void* const block = from_heap(bytes, alignment)) return block;
  return next()->aligned_alloc(alignment, bytes);
}

int posix_memalign(void** block, size_t alignment, size_t bytes) {
  if (alignment % sizeof(void*) == 0) {
    if (void* const allocated = from_heap(bytes, alignment)) {
      *block = allocated;
      return 0;
    }
  }
  return next()->posix_memalign(block, alignment, bytes);
}

void* valloc(size_t bytes) { return memalign(static_cast<size_t>(getpagesize()), bytes); }

size_t malloc_usable_size(void* block) { return block == nullptr ? 0 : size_of(block); }

}  // extern "C"
#pragma GCC visibility pop
