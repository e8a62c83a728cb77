// Watches the calls by which a program maps other memory over blocks of the heap: peers would go on seeing what lay
// there before.
//
// Contract: mmap and its family, as the C library documents them. The heap learns what they do to its blocks.
//   MADV_DONTNEED and MADV_FREE make blocks read as zeros, as MADV_DONTNEED does to other memory of malloc.
// Invariants: (1) programs reach the calls by the C library's symbol version, dlsym does not find them: libraries that
//   patch mmap (UCX, Open MPI) look it up by dlsym, and patch the C library's, which is called from here; (2) nothing
//   is allocated, and nothing is looked up but at the beginning: malloc may be under way.
// Threads: any. Time: none.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdint>

#include "base/shared_heap.hpp"

#define SPL_WATCHED(name) __asm__(".symver watched_" #name ", " #name "@" SPINLOOM_LIBC_VERSION)

extern "C" {

spinloom::SharedHeap* SPINLOOM_PROCESS_HEAP();

#define SPL_EXPORT [[gnu::visibility("default")]]
SPL_EXPORT void* watched_mmap(void* start, size_t bytes, int protection, int flags, int file, off_t offset);
SPL_EXPORT void* watched_mmap64(void* start, size_t bytes, int protection, int flags, int file, off64_t offset);
SPL_EXPORT int watched_munmap(void* start, size_t bytes);
SPL_EXPORT void* watched_mremap(void* start, size_t bytes, size_t wanted, int flags, ...);
SPL_EXPORT void* watched_shmat(int segment, const void* start, int flags);
SPL_EXPORT int watched_madvise(void* start, size_t bytes, int advice);

}  // extern "C"

SPL_WATCHED(mmap);
SPL_WATCHED(mmap64);
SPL_WATCHED(munmap);
SPL_WATCHED(mremap);
SPL_WATCHED(shmat);
SPL_WATCHED(madvise);

namespace {

// The next function of that name; until it has been looked up, the system call.
template <long number, class Function>
class Next;
template <long number, class Result, class... Arguments>
class Next<number, Result(Arguments...)> {
 public:
  void look_up(const char* name) { found_ = reinterpret_cast<Result (*)(Arguments...)>(dlsym(RTLD_NEXT, name)); }
  Result operator()(Arguments... arguments) const {
    if (found_ != nullptr) return found_(arguments...);
    return (Result)syscall(number, arguments...);  // a number or an address
  }

 private:
  Result (*found_)(Arguments...) = nullptr;
};

constinit Next<SYS_mmap, void*(void*, size_t, int, int, int, off_t)> next_mmap;
constinit Next<SYS_munmap, int(void*, size_t)> next_munmap;
constinit Next<SYS_mremap, void*(void*, size_t, size_t, int, void*)> next_mremap;
constinit Next<SYS_shmat, void*(int, const void*, int)> next_shmat;
constinit Next<SYS_madvise, int(void*, size_t, int)> next_madvise;

[[gnu::constructor]] void begin() {
  next_mmap.look_up("mmap");
  next_munmap.look_up("munmap");
  next_mremap.look_up("mremap");
  next_shmat.look_up("shmat");
  next_madvise.look_up("madvise");
}

spinloom::SharedHeap& heap() { return *SPINLOOM_PROCESS_HEAP(); }

}  // namespace

void* watched_mmap(void* start, size_t bytes, int protection, int flags, int file, off_t offset) {
  void* const mapped = next_mmap(start, bytes, protection, flags, file, offset);
  if (mapped != MAP_FAILED && (flags & MAP_FIXED) != 0) heap().mark_replaced(start, bytes);
  return mapped;
}

void* watched_mmap64(void* start, size_t bytes, int protection, int flags, int file, off64_t offset) {
  return watched_mmap(start, bytes, protection, flags, file, offset);
}

int watched_munmap(void* start, size_t bytes) {
  const int code = next_munmap(start, bytes);
  if (code == 0) heap().mark_replaced(start, bytes);
  return code;
}

void* watched_mremap(void* start, size_t bytes, size_t wanted, int flags, ...) {
  void* target = nullptr;
  if ((flags & MREMAP_FIXED) != 0) {
    va_list rest;
    va_start(rest, flags);
    target = va_arg(rest, void*);
    va_end(rest);
  }
  void* const mapped = next_mremap(start, bytes, wanted, flags, target);
  if (mapped == MAP_FAILED) return mapped;
  if (mapped != start) {
    heap().mark_moved(start, bytes);
    heap().mark_replaced(mapped, wanted);
  } else if (wanted < bytes) {
    heap().mark_replaced(static_cast<uint8_t*>(start) + wanted, bytes - wanted);
  }
  return mapped;
}

void* watched_shmat(int segment, const void* start, int flags) {
  shmid_ds segment_facts{};
  void* const mapped = next_shmat(segment, start, flags);
  if ((flags & SHM_REMAP) != 0 && mapped != MAP_FAILED && shmctl(segment, IPC_STAT, &segment_facts) == 0) {
    heap().mark_replaced(mapped, segment_facts.shm_segsz);
  }
  return mapped;
}

int watched_madvise(void* start, size_t bytes, int advice) {
  const bool empties = (advice == MADV_DONTNEED || advice == MADV_FREE) && heap().contains(start, bytes);
  if (!empties) return next_madvise(start, bytes, advice);
  if (heap().is_shared(start, bytes)) return next_madvise(start, bytes, MADV_REMOVE);
  const int code = next_madvise(start, bytes, MADV_DONTNEED);
  const auto page = static_cast<size_t>(getpagesize());
  if (code == 0) heap().punch_hole(start, (bytes + page - 1) / page * page);
  return code;
}
