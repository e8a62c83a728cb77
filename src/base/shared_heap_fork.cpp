// What a fork does to the heap: the child gets a copy of the blocks in a file of its own.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/shared_heap.hpp"

namespace spinloom {
namespace {

// MemAvailable, read without allocating.
uint64_t available_bytes() {
  char text[256] = "";
  const int file = ::open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t got = read(file, text, sizeof text - 1);
  close(file);
  const char* const line = got > 0 ? std::strstr(text, "MemAvailable:") : nullptr;
  return line == nullptr ? 0 : std::strtoull(line + std::strlen("MemAvailable:"), nullptr, 10) << 10;
}

bool write_all(int file, const uint8_t* from, uint64_t offset, uint64_t bytes) {
  while (bytes > 0) {
    const ssize_t done = pwrite(file, from, std::min<uint64_t>(bytes, uint64_t{1} << 30), static_cast<off_t>(offset));
    if (done <= 0) return false;
    from += done;
    offset += static_cast<uint64_t>(done);
    bytes -= static_cast<uint64_t>(done);
  }
  return true;
}

SharedHeap* watching = nullptr;  // the heap whose fork handlers are registered

}  // namespace

void SharedHeap::watch_forks() {
  pthread_mutex_lock(&mutex_);
  if (!std::exchange(watches_, true)) {
    watching = this;
    pthread_atfork([] { watching->before_fork(); }, [] { watching->after_fork_in_parent(); },
                   [] { watching->after_fork_in_child(); });
  }
  pthread_mutex_unlock(&mutex_);
}

// Copies the bytes from `begin` to `end` to the file `to`. Holes of our file stay holes in the copy, unless the
// program has closed our descriptor: then the holes cannot be found.
bool SharedHeap::copy_data(int to, uint64_t begin, uint64_t end) const {
  if (!is_ours(file_)) return write_all(to, at(0) + begin, begin, end - begin);
  while (begin < end) {
    const off_t data = lseek(file_, static_cast<off_t>(begin), SEEK_DATA);
    if (data < 0 || static_cast<uint64_t>(data) >= end) return data >= 0 || errno == ENXIO;
    const off_t hole = lseek(file_, data, SEEK_HOLE);
    if (hole < 0) return false;
    const uint64_t until = std::min(end, static_cast<uint64_t>(hole));
    if (!write_all(to, at(0) + data, static_cast<uint64_t>(data), until - static_cast<uint64_t>(data))) return false;
    begin = until;
  }
  return true;
}

int SharedHeap::copy_of_blocks() const {
  struct stat status{};
  uint64_t held = uint64_t{ranges_.used()} * granule_bytes;
  if (is_ours(file_) && fstat(file_, &status) == 0) held = static_cast<uint64_t>(status.st_blocks) * 512;
  if (private_ || held > available_bytes() / 2) return -1;
  const int copy = make_file();
  bool whole = copy >= 0;
  ranges_.each_used([&](uint32_t first, uint32_t count) {
    const uint64_t begin = first * granule_bytes;
    if (!ranges_.is_marked(first)) whole = whole && copy_data(copy, begin, begin + count * granule_bytes);
  });
  if (whole || copy < 0) return copy;
  close(copy);
  return -1;
}

// A forked child has inherited the memory that the program has mapped over blocks.
bool SharedHeap::map_around_replaced(int flags, int file) {
  uint32_t mapped = 0;
  bool done = true;
  ranges_.each_used([&](uint32_t first, uint32_t count) {
    if (!ranges_.is_marked(first)) return;
    done = done && map(mapped, first, flags, file);
    mapped = first + count;
  });
  return done && map(mapped, static_cast<uint32_t>(bytes_ / granule_bytes), flags, file);
}

void SharedHeap::before_fork() {
  pthread_mutex_lock(&mutex_);
  if (base_.load(std::memory_order_relaxed) != 0) heir_ = copy_of_blocks();
}

void SharedHeap::after_fork_in_parent() {
  if (heir_ >= 0) close(heir_);
  heir_ = -1;
  pthread_mutex_unlock(&mutex_);
}

void SharedHeap::after_fork_in_child() {
  mutex_ = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;  // the lock belongs to a thread of the parent
  if (base_.load(std::memory_order_relaxed) == 0 || private_) return;
  const bool had = is_ours(file_);
  const int old = file_;
  bool mapped = false;
  if (heir_ >= 0) {
    mapped = map_around_replaced(MAP_SHARED, heir_);
    keep(heir_);
  }
  if (!mapped) {
    private_ = true;
    mapped = had && map_around_replaced(MAP_PRIVATE, old);
  }
  if (!mapped) mprotect(at(0), bytes_, PROT_READ);  // a fault is better than wrong bytes
  if (had) close(old);
  heir_ = -1;
}

}  // namespace spinloom
