#include "base/shared_heap.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace spinloom {
namespace {

// Our descriptor gets a number from half of this on, because programs and shells use the small numbers.
constexpr int file_number_max = 1000;

static_assert(SharedHeap::region_bytes_max / SharedHeap::granule_bytes <= RangeTable::granules_max);

// Returns the size of the region: as large as the limits allow, with addresses left for the rest of the program.
// ftruncate beyond the limit for files would kill the process.
uint64_t reservable_bytes() {
  rlimit file{}, addresses{};
  getrlimit(RLIMIT_FSIZE, &file);
  getrlimit(RLIMIT_AS, &addresses);
  uint64_t bytes = SharedHeap::region_bytes_max;
  while (bytes > file.rlim_cur || bytes > addresses.rlim_cur / 4) bytes /= 2;
  return bytes;
}

int high_descriptor(int file) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  const int number_min = static_cast<int>(std::min<rlim_t>(files.rlim_cur, file_number_max)) / 2;
  const int high = fcntl(file, F_DUPFD_CLOEXEC, number_min);
  if (high < 0) return file;
  close(file);
  return high;
}

}  // namespace

class SharedHeap::Lock {
 public:
  explicit Lock(SharedHeap& heap) : mutex_(&heap.mutex_) { pthread_mutex_lock(mutex_); }
  ~Lock() { pthread_mutex_unlock(mutex_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  pthread_mutex_t* mutex_;
};

uint8_t* SharedHeap::address_of(uint32_t granule) const {
  return reinterpret_cast<uint8_t*>(base_.load(std::memory_order_relaxed)) + size_t{granule} * granule_bytes;
}

uint32_t SharedHeap::granule_of(const void* block) const {
  if (!contains(block, 1)) return RangeTable::none;
  const uint64_t offset = reinterpret_cast<uint64_t>(block) - base_.load(std::memory_order_relaxed);
  return offset % granule_bytes == 0 ? static_cast<uint32_t>(offset / granule_bytes) : RangeTable::none;
}

int SharedHeap::open() {
  if (base_.load(std::memory_order_acquire) != 0) return 0;
  const Lock lock(*this);
  if (base_.load(std::memory_order_relaxed) == 0 && open_errno_ == 0) open_errno_ = reserve();
  return open_errno_;
}

// Returns a file of `bytes_` bytes that can neither shrink nor grow, or -1.
int SharedHeap::make_file() const {
  const int file = memfd_create("spinloom-heap", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return -1;
  if (ftruncate(file, static_cast<off_t>(bytes_)) == 0 && fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0) {
    return file;
  }
  const int error = errno;
  close(file);
  errno = error;
  return -1;
}

int SharedHeap::reserve() {
  void* reserved = MAP_FAILED;
  for (bytes_ = reservable_bytes(); reserved == MAP_FAILED && bytes_ >= region_bytes_min; bytes_ /= 2) {
    reserved = mmap(nullptr, bytes_ + alignment_max, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved != MAP_FAILED) break;
  }
  if (reserved == MAP_FAILED) return bytes_ < region_bytes_min ? ENOMEM : errno;
  const auto begin = reinterpret_cast<uint64_t>(reserved);
  const uint64_t base = (begin + alignment_max - 1) & ~uint64_t{alignment_max - 1};
  const auto granules = static_cast<uint32_t>(bytes_ / granule_bytes);
  const int file = make_file();
  void* const table = mmap(nullptr, RangeTable::bytes_for(granules), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (file < 0 || table == MAP_FAILED ||
      mmap(reinterpret_cast<void*>(base), bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file,
           0) == MAP_FAILED) {
    const int error = errno;
    if (file >= 0) close(file);
    if (table != MAP_FAILED) munmap(table, RangeTable::bytes_for(granules));
    munmap(reserved, bytes_ + alignment_max);
    return error;
  }
  if (base > begin) munmap(reserved, base - begin);
  if (begin + alignment_max > base) munmap(reinterpret_cast<void*>(base + bytes_), begin + alignment_max - base);
  ranges_ = RangeTable(table, granules);
  adopt_file(file);
  base_.store(base, std::memory_order_release);
  // Without MADV_DONTDUMP, a core file would hold every page of the region, even pages that were never touched.
  madvise(reinterpret_cast<void*>(base), bytes_, MADV_DONTDUMP);
  watch_forks();
  return 0;
}

void SharedHeap::adopt_file(int file) {
  file_ = high_descriptor(file);
  struct stat status{};
  inode_ = fstat(file_, &status) == 0 ? status.st_ino : 0;
}

bool SharedHeap::is_ours(int file) const {
  struct stat status{};
  return file >= 0 && fstat(file, &status) == 0 && status.st_ino == inode_ &&
         static_cast<uint64_t>(status.st_size) == bytes_;
}

void* SharedHeap::allocate(size_t bytes, size_t alignment, bool zeroed) {
  if (bytes == 0 || bytes > region_bytes_max || alignment > alignment_max || open() != 0) return nullptr;
  const auto count = static_cast<uint32_t>((bytes + granule_bytes - 1) / granule_bytes);
  const auto step = static_cast<uint32_t>(std::max(alignment, granule_bytes) / granule_bytes);
  RangeTable::Allocation allocation;
  {
    const Lock lock(*this);
    allocation = ranges_.allocate(count, step);
  }
  if (allocation.first == RangeTable::none) return nullptr;
  uint8_t* const block = address_of(allocation.first);
  const bool can_discard = bytes > idle_bytes && !is_private_;  // erasing few bytes is faster than new pages
  if (zeroed && (is_private_ || allocation.dirty) && !(can_discard && discard(allocation.first, count)))
    std::memset(block, 0, bytes);
  return block;
}

// Gives the pages of these granules back to the system; they read as zeros afterwards. False: the system refuses, as it
// does for a private heap.
bool SharedHeap::discard(uint32_t first, uint32_t count) const {
  return madvise(address_of(first), size_t{count} * granule_bytes, MADV_REMOVE) == 0;
}

bool SharedHeap::release(void* block) {
  const Lock lock(*this);
  const uint32_t first = granule_of(block);
  if (ranges_.count_of(first) == 0) return false;
  if (ranges_.is_pinned(first)) return true;
  if (ranges_.is_marked(first)) {
    const uint32_t end = first + ranges_.count_of(first);
    const bool is_restored = is_private_ ? map(first, end, MAP_PRIVATE | MAP_ANONYMOUS, -1)
                                         : is_ours(file_) && map(first, end, MAP_SHARED, file_);
    if (!is_restored) return true;  // the memory there is not ours: the block stays in use
  }
  ranges_.release(first);
  if (size_t{ranges_.dirty_granules()} * granule_bytes > idle_bytes) {
    ranges_.clean([this](uint32_t from, uint32_t count) { return discard(from, count); });
  }
  return true;
}

bool SharedHeap::resize(void* block, size_t bytes) {
  const Lock lock(*this);
  const uint32_t first = granule_of(block);
  if (first == RangeTable::none || bytes > bytes_) return false;
  return ranges_.resize(first, static_cast<uint32_t>((bytes + granule_bytes - 1) / granule_bytes));
}

bool SharedHeap::map(uint32_t first, uint32_t end, int flags, int file) {
  if (first == end) return true;
  const size_t bytes = size_t{end - first} * granule_bytes;
  const auto offset = static_cast<off_t>(size_t{first} * granule_bytes);
  is_mapping_ = true;
  void* const mapped = mmap(address_of(first), bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED | MAP_NORESERVE, file,
                            file < 0 ? 0 : offset);
  is_mapping_ = false;
  if (mapped == MAP_FAILED) return false;
  madvise(mapped, bytes, MADV_DONTDUMP);
  return true;
}

void SharedHeap::mark(const void* start, size_t bytes, bool moved) {
  const uint64_t base = base_.load(std::memory_order_acquire);
  const auto first = reinterpret_cast<uint64_t>(start);
  if (base == 0 || bytes == 0 || first >= base + bytes_ || (first < base && base - first >= bytes)) return;
  const uint64_t from = first < base ? 0 : first - base;
  const uint64_t end = bytes_ - from < bytes ? bytes_ : first + bytes - base;
  const auto granule = static_cast<uint32_t>(from / granule_bytes);
  const auto last = static_cast<uint32_t>((end - 1) / granule_bytes);
  const Lock lock(*this);
  if (is_mapping_) return;
  const RangeTable::Span marked = ranges_.mark(granule, last - granule + 1, moved);
  replaced_last_.store(std::max(replaced_last_.load(), marked.last));
  replaced_first_.store(std::min(replaced_first_.load(), marked.first));
  for (std::atomic<uint64_t>* const word : replacement_words_) {
    if (word != nullptr) word->fetch_add(1);
  }
}

bool SharedHeap::count_replacements(std::atomic<uint64_t>& word) {
  const Lock lock(*this);
  for (std::atomic<uint64_t>*& place : replacement_words_) {
    if (place != nullptr) continue;
    place = &word;
    return true;
  }
  return false;
}

void SharedHeap::forget(const std::atomic<uint64_t>& word) {
  const Lock lock(*this);
  for (std::atomic<uint64_t>*& place : replacement_words_) {
    if (place == &word) place = nullptr;
  }
}

bool SharedHeap::is_shared(const void* start, size_t bytes) {
  if (!contains(start, bytes)) return false;
  const uint32_t replaced_first = replaced_first_.load(std::memory_order_acquire);
  if (bytes == 0 || replaced_first == RangeTable::none) return true;
  const uint64_t offset = reinterpret_cast<uint64_t>(start) - base_.load(std::memory_order_relaxed);
  const auto first = static_cast<uint32_t>(offset / granule_bytes);
  const auto last = static_cast<uint32_t>((offset + bytes - 1) / granule_bytes);
  if (last < replaced_first || first > replaced_last_.load()) return true;
  const Lock lock(*this);
  return !ranges_.any_marked(first, last - first + 1);
}

void SharedHeap::punch_hole(const void* start, size_t bytes) {
  if (bytes == 0 || !contains(start, bytes)) return;
  const uint64_t offset = reinterpret_cast<uint64_t>(start) - base_.load(std::memory_order_relaxed);
  const auto first = static_cast<uint32_t>(offset / granule_bytes);
  const auto last = static_cast<uint32_t>((offset + bytes - 1) / granule_bytes);
  const Lock lock(*this);
  if (is_private_ || !is_ours(file_) || ranges_.any_pinned(first, last - first + 1)) return;
  (void)fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                  static_cast<off_t>(bytes));
}

size_t SharedHeap::size_of(const void* block) {
  const Lock lock(*this);
  return size_t{ranges_.count_of(granule_of(block))} * granule_bytes;
}

size_t SharedHeap::used_bytes() {
  const Lock lock(*this);
  return size_t{ranges_.used_granules()} * granule_bytes;
}

SharedHeap::Location SharedHeap::location() {
  const Lock lock(*this);
  const uint64_t base = base_.load(std::memory_order_relaxed);
  if (base == 0 || is_private_) return {};
  return {bytes_, base, inode_, file_};
}

}  // namespace spinloom
