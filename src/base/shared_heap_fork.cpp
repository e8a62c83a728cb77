// The effect of a fork on the heap: the child gets a copy of the blocks in a file of its own, or a private heap.
#include <fcntl.h>
#include <linux/limits.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/shared_heap.hpp"

namespace spinloom {
namespace {

// Returns MemAvailable of /proc/meminfo in bytes, read without allocating; 0 if it cannot be read.
uint64_t available_bytes() {
  char text[256] = "";
  const int file = ::open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t read_bytes = read(file, text, sizeof text - 1);
  close(file);
  const char* const line = read_bytes > 0 ? std::strstr(text, "MemAvailable:") : nullptr;
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

bool send_all(int from, int to, uint64_t offset, uint64_t bytes) {
  auto at = static_cast<off_t>(offset);
  if (lseek(to, at, SEEK_SET) != at) return false;
  while (bytes > 0) {
    const ssize_t done = sendfile(to, from, &at, std::min<uint64_t>(bytes, uint64_t{1} << 30));
    if (done <= 0) return false;
    bytes -= static_cast<uint64_t>(done);
  }
  return true;
}

// A line of /proc/self/maps that describes a shared mapping of a heap's file; all zeros for every other line.
struct SharedMapping {
  uint64_t begin = 0, end = 0, offset = 0, inode = 0;
  int protection = 0;
};

SharedMapping mapping_in(const char* line) {
  SharedMapping found;
  char* at = nullptr;
  found.begin = std::strtoull(line, &at, 16);
  if (*at != '-') return {};
  found.end = std::strtoull(at + 1, &at, 16);
  if (std::strlen(at) < 6 || at[4] != 's') return {};
  found.protection = (at[1] == 'r' ? PROT_READ : 0) | (at[2] == 'w' ? PROT_WRITE : 0) | (at[3] == 'x' ? PROT_EXEC : 0);
  found.offset = std::strtoull(at + 6, &at, 16);
  at = std::strchr(at + 1, ' ');  // the blank behind the device
  if (at == nullptr) return {};
  found.inode = std::strtoull(at, &at, 10);
  return std::strstr(at, "/memfd:spinloom-heap") == nullptr ? SharedMapping{} : found;
}

SharedHeap* watching = nullptr;  // the heap whose fork handlers are registered

}  // namespace

void SharedHeap::watch_forks() {
  pthread_mutex_lock(&mutex_);
  if (!std::exchange(watches_forks_, true)) {
    watching = this;
    pthread_atfork([] { watching->before_fork(); }, [] { watching->after_fork_in_parent(); },
                   [] { watching->after_fork_in_child(); });
  }
  pthread_mutex_unlock(&mutex_);
}

// Copies the bytes from `begin` to `end` to the file `to`. Holes of our file stay holes in the copy, unless the program
// has closed our descriptor: then the holes cannot be found. With `from_file`, the bytes are read from the file,
// because other memory may lie over them; without our descriptor they are left out.
bool SharedHeap::copy_data(int to, uint64_t begin, uint64_t end, bool from_file) const {
  if (!is_ours(file_)) return from_file || write_all(to, address_of(0) + begin, begin, end - begin);
  while (begin < end) {
    const off_t data = lseek(file_, static_cast<off_t>(begin), SEEK_DATA);
    if (data < 0 || static_cast<uint64_t>(data) >= end) return data >= 0 || errno == ENXIO;
    const off_t hole = lseek(file_, data, SEEK_HOLE);
    if (hole < 0) return false;
    const uint64_t until = std::min(end, static_cast<uint64_t>(hole));
    const auto from = static_cast<uint64_t>(data);
    if (!(from_file ? send_all(file_, to, from, until - from)
                    : write_all(to, address_of(0) + data, from, until - from))) {
      return false;
    }
    begin = until;
  }
  return true;
}

// Returns a new file with a copy of the blocks, or -1.
int SharedHeap::copy_blocks() const {
  struct stat status{};
  uint64_t held_bytes = uint64_t{ranges_.used_granules()} * granule_bytes;
  if (is_ours(file_) && fstat(file_, &status) == 0) held_bytes = static_cast<uint64_t>(status.st_blocks) * 512;
  if (is_private_ || held_bytes > available_bytes() / 2) return -1;
  const int copy = make_file();
  bool is_complete = copy >= 0;
  ranges_.for_each_used([&](uint32_t first, uint32_t count) {
    const uint64_t begin = first * granule_bytes;
    is_complete = is_complete && copy_data(copy, begin, begin + count * granule_bytes, ranges_.is_marked(first));
  });
  if (is_complete || copy < 0) return copy;
  close(copy);
  return -1;
}

// Maps the file over the region, except over marked blocks: a forked child has inherited the memory that the program
// has mapped over those.
bool SharedHeap::map_around_replaced(int flags, int file) {
  uint32_t mapped_end = 0;  // granules before this one are mapped, or marked
  bool is_mapped = true;
  ranges_.for_each_used([&](uint32_t first, uint32_t count) {
    if (!ranges_.is_marked(first)) return;
    is_mapped = is_mapped && map(mapped_end, first, flags, file);
    mapped_end = first + count;
  });
  return is_mapped && map(mapped_end, static_cast<uint32_t>(bytes_ / granule_bytes), flags, file);
}

// Maps the file over all other mappings of the parent's file: pages of marked blocks around the other memory, and pages
// that the program has moved elsewhere. Where that fails, the pages become read-only.
void SharedHeap::remap_remaining(uint64_t inode, int flags, int file) const {
  const int maps = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (maps < 0) return;
  char lines[2 * PATH_MAX];
  size_t filled = 0;
  for (ssize_t read_bytes = 0; (read_bytes = read(maps, lines + filled, sizeof lines - 1 - filled)) > 0;) {
    filled += static_cast<size_t>(read_bytes);
    lines[filled] = '\0';
    char* line = lines;
    for (char* end = nullptr; (end = std::strchr(line, '\n')) != nullptr; line = end + 1) {
      *end = '\0';
      const SharedMapping mapping = mapping_in(line);
      if (mapping.inode != inode || mapping.end <= mapping.begin) continue;
      void* const start = reinterpret_cast<void*>(mapping.begin);
      const size_t bytes = mapping.end - mapping.begin;
      if (mmap(start, bytes, mapping.protection, flags | MAP_FIXED | MAP_NORESERVE, file,
               static_cast<off_t>(mapping.offset)) == MAP_FAILED) {
        mprotect(start, bytes, mapping.protection & ~PROT_WRITE);
      }
    }
    filled -= static_cast<size_t>(line - lines);
    std::memmove(lines, line, filled);
  }
  close(maps);
}

void SharedHeap::before_fork() {
  pthread_mutex_lock(&mutex_);
  if (base_.load(std::memory_order_relaxed) != 0) child_file_ = copy_blocks();
}

void SharedHeap::after_fork_in_parent() {
  if (child_file_ >= 0) close(child_file_);
  child_file_ = -1;
  pthread_mutex_unlock(&mutex_);
}

void SharedHeap::after_fork_in_child() {
  mutex_ = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;  // the lock belongs to a thread of the parent
  std::fill(std::begin(replacement_words_), std::end(replacement_words_), nullptr);  // they count the parent's
  if (base_.load(std::memory_order_relaxed) == 0 || is_private_) return;
  const bool owns_file = is_ours(file_);
  const int parent_file = file_;
  const uint64_t inode = inode_;
  const bool has_replaced = replaced_first_.load(std::memory_order_relaxed) != RangeTable::none;
  bool mapped = false;
  is_mapping_ = true;
  if (child_file_ >= 0) {
    mapped = map_around_replaced(MAP_SHARED, child_file_);
    if (mapped && has_replaced) remap_remaining(inode, MAP_SHARED, child_file_);
    adopt_file(child_file_);
  }
  if (!mapped) {
    is_private_ = true;
    mapped = owns_file && map_around_replaced(MAP_PRIVATE, parent_file);
    if (mapped && has_replaced) remap_remaining(inode, MAP_PRIVATE, parent_file);
  }
  is_mapping_ = false;
  if (!mapped) mprotect(address_of(0), bytes_, PROT_READ);  // a fault is better than wrong bytes
  if (owns_file) close(parent_file);
  child_file_ = -1;
}

}  // namespace spinloom
