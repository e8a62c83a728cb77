#include "memory/peer/heap_view.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

namespace spinloom::peer {
namespace {

// True if the file is the one that `place` describes, lies in memory (tmpfs) and is sealed against shrinking. Other
// file systems are refused: one may be full, and reading a hole of its files would then kill the process.
bool is_sealed_memory(int file, const SharedHeap::Location& place) {
  struct stat status{};
  struct statfs system{};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_ino != place.inode ||
      static_cast<uint64_t>(status.st_size) != place.bytes || fstatfs(file, &system) != 0) {
    return false;
  }
  const int seals = fcntl(file, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && system.f_type == TMPFS_MAGIC;
}

// True if a mapping of `bytes` bytes leaves the program a quarter of the addresses that the process may use. This holds
// for any number of peers. Without a limit (RLIMIT_AS) there is always room.
bool leaves_room(uint64_t bytes) {
  rlimit addresses{};
  if (getrlimit(RLIMIT_AS, &addresses) != 0 || addresses.rlim_cur == RLIM_INFINITY) return true;
  uint64_t used_pages = 0;
  std::ifstream("/proc/self/statm") >> used_pages;
  const uint64_t address_bytes = used_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + bytes;
  return address_bytes <= addresses.rlim_cur && addresses.rlim_cur - address_bytes >= addresses.rlim_cur / 4;
}

}  // namespace

HeapView::HeapView(HeapView&& other) noexcept
    : local_base_(std::exchange(other.local_base_, nullptr)),
      peer_base_(std::exchange(other.peer_base_, 0)),
      bytes_(std::exchange(other.bytes_, 0)),
      is_own_(other.is_own_) {}

HeapView& HeapView::operator=(HeapView&& other) noexcept {
  std::swap(local_base_, other.local_base_);
  std::swap(peer_base_, other.peer_base_);
  std::swap(bytes_, other.bytes_);
  std::swap(is_own_, other.is_own_);
  return *this;
}

HeapView::~HeapView() {
  if (local_base_ != nullptr && !is_own_) munmap(const_cast<uint8_t*>(local_base_), bytes_);
}

Result<HeapView> HeapView::map(int64_t pid, const SharedHeap::Location& place, bool writable) {
  const std::string path = text("/proc/", pid, "/fd/", place.file);
  const int file = open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return fail(Code::environment, path, ": ", std::strerror(errno));
  if (!is_sealed_memory(file, place)) {
    close(file);
    return fail(Code::environment, path, " is not its heap, or not sealed");
  }
  if (place.bytes > SharedHeap::region_bytes_max || !leaves_room(place.bytes)) {
    close(file);
    return fail(Code::environment, place.bytes, " B of address space for it are too much (ulimit -v)");
  }
  void* const mapped =
      mmap(nullptr, place.bytes, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED | MAP_NORESERVE, file, 0);
  const int error = errno;
  close(file);
  if (mapped == MAP_FAILED) {
    return fail(Code::environment, place.bytes, " B of address space for it: ", std::strerror(error));
  }
  // A forked child does not need the mapping, and a core file would hold every page of it.
  madvise(mapped, place.bytes, MADV_DONTFORK);
  madvise(mapped, place.bytes, MADV_DONTDUMP);
  HeapView view;
  view.local_base_ = static_cast<const uint8_t*>(mapped);
  view.peer_base_ = place.base;
  view.bytes_ = place.bytes;
  return view;
}

}  // namespace spinloom::peer
