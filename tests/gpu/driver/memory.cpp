#include "memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "guard.hpp"

namespace fake {
namespace {

constexpr size_t page = 4096;

// FAKE_GPU_BYTES: how much memory the device has.
size_t capacity() {
  const char* const told = std::getenv("FAKE_GPU_BYTES");
  return told != nullptr ? std::strtoull(told, nullptr, 10) : size_t{8} << 30;
}

// FAKE_GPU_OPEN: everybody may touch device memory, so that an MPI that says it knows of GPUs can; all but the library
// that it names, if it is not 1.
int closed() {
  static const bool open = [] {
    const char* const told = std::getenv("FAKE_GPU_OPEN");
    return told != nullptr && (std::strcmp(told, "1") == 0 || !guard_begin(told));
  }();
  return open ? PROT_READ | PROT_WRITE : PROT_NONE;
}

size_t in_pages(size_t bytes) { return (bytes + page - 1) / page * page; }

}  // namespace

Memory& Memory::all() {
  static auto* const memory = new Memory;
  return *memory;
}

uint64_t Memory::keep(Allocation made) {
  made.number = next_number_++;
  if (made.is_device && !made.is_import) used_ += made.mapped;
  allocations_[made.start] = made;
  return made.start;
}

uint64_t Memory::device(size_t bytes, int ordinal) {
  const std::lock_guard lock(mutex_);
  const size_t mapped = in_pages(bytes);
  if (bytes == 0 || mapped > bytes_left()) return 0;
  const int file = memfd_create("fake-gpu", MFD_CLOEXEC);
  if (file < 0) return 0;
  void* const start = ftruncate(file, static_cast<off_t>(mapped)) == 0
                          ? mmap(nullptr, mapped, open_ > 0 ? PROT_READ | PROT_WRITE : closed(), MAP_SHARED, file, 0)
                          : MAP_FAILED;
  if (start == MAP_FAILED) {
    close(file);
    return 0;
  }
  return keep({.start = reinterpret_cast<uint64_t>(start),
               .bytes = bytes,
               .mapped = mapped,
               .ordinal = ordinal,
               .file = file,
               .is_device = true});
}

uint64_t Memory::pinned(size_t bytes) {
  const std::lock_guard lock(mutex_);
  const size_t mapped = in_pages(bytes);
  void* const start = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return 0;
  return keep({.start = reinterpret_cast<uint64_t>(start), .bytes = bytes, .mapped = mapped});
}

bool Memory::free(uint64_t start, bool is_device) {
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(start);
  if (found == allocations_.end() || found->second.is_device != is_device || found->second.is_foreign) return false;
  const Allocation gone = found->second;
  allocations_.erase(found);
  freed_.push_front(gone);
  if (freed_.size() > freed_max) freed_.pop_back();
  munmap(reinterpret_cast<void*>(gone.start), gone.mapped);
  if (gone.window != nullptr) munmap(gone.window, gone.mapped);
  if (gone.file >= 0) close(gone.file);
  if (gone.is_device && !gone.is_import) used_ -= gone.mapped;
  return true;
}

bool Memory::pin(uint64_t start, size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (start % page != 0 || bytes == 0 || allocations_.contains(start)) return false;
  keep({.start = start, .bytes = bytes, .mapped = in_pages(bytes), .is_foreign = true});
  return true;
}

bool Memory::unpin(uint64_t start) {
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(start);
  if (found == allocations_.end() || !found->second.is_foreign) return false;
  allocations_.erase(found);
  return true;
}

std::optional<Allocation> Memory::find(uint64_t address) {
  const std::lock_guard lock(mutex_);
  auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return std::nullopt;
  --after;
  const Allocation& found = after->second;
  return address - found.start < found.bytes ? std::optional(found) : std::nullopt;
}

std::optional<Allocation> Memory::let(uint64_t address) {
  const std::lock_guard lock(mutex_);
  auto found = find(address / page * page);
  if (!found || !found->is_device) return std::nullopt;
  mprotect(reinterpret_cast<void*>(found->start), found->mapped, PROT_READ | PROT_WRITE);
  return found;
}

void Memory::shut(const Allocation& one) {
  const std::lock_guard lock(mutex_);
  const auto found = find(one.start);
  if (open_ == 0 && found && found->number == one.number)
    mprotect(reinterpret_cast<void*>(one.start), one.mapped, closed());
}

std::optional<Handle> Memory::handle_of(uint64_t start) {
  const auto found = find(start);
  if (!found || !found->is_device || found->is_import) return std::nullopt;
  return Handle{getpid(), found->file, found->bytes, found->number};
}

uint64_t Memory::open(const Handle& handle, bool& stale) {
  const std::lock_guard lock(mutex_);
  const std::string path = "/proc/" + std::to_string(handle.process) + "/fd/" + std::to_string(handle.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return 0;
  for (const auto& [start, allocation] : allocations_) {
    if (!allocation.is_import || allocation.from.process != handle.process || allocation.from.file != handle.file)
      continue;
    if (allocation.from.number != handle.number) stale = true;
  }
  if (stale) {
    close(file);
    return 0;
  }
  const size_t mapped = in_pages(handle.bytes);
  void* const start = mmap(nullptr, mapped, open_ > 0 ? PROT_READ | PROT_WRITE : closed(), MAP_SHARED, file, 0);
  if (start == MAP_FAILED) {
    close(file);
    return 0;
  }
  return keep({.start = reinterpret_cast<uint64_t>(start),
               .bytes = handle.bytes,
               .mapped = mapped,
               .file = file,
               .is_device = true,
               .is_import = true,
               .from = handle});
}

size_t Memory::bytes_left() {
  const std::lock_guard lock(mutex_);
  const size_t all = capacity();
  return all > used_ ? all - used_ : 0;
}

Memory::Past Memory::past_of(uint64_t address) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  Past past;
  past.is_known = lock.owns_lock();
  if (!past.is_known) return past;
  past.is_open = open_ > 0;
  const auto holds = [address](const Allocation& one) { return address - one.start < one.mapped; };
  if (auto after = allocations_.upper_bound(address); after != allocations_.begin() && holds((--after)->second))
    past.now = after->second;
  if (const auto found = std::ranges::find_if(freed_, holds); found != freed_.end()) past.freed = *found;
  return past;
}

void* Memory::window(uint64_t start) {
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(start);
  if (found == allocations_.end() || found->second.file < 0) return nullptr;
  Allocation& known = found->second;
  if (known.window == nullptr) {
    void* const made = mmap(nullptr, known.mapped, PROT_READ | PROT_WRITE, MAP_SHARED, known.file, 0);
    if (made != MAP_FAILED) known.window = made;
  }
  return known.window;
}

void Memory::protect(int access) {
  for (const auto& [start, allocation] : allocations_) {
    if (allocation.is_device) mprotect(reinterpret_cast<void*>(start), allocation.mapped, access);
  }
}

Open::Open() {
  Memory& memory = Memory::all();
  memory.mutex_.lock();
  if (memory.open_++ == 0) memory.protect(PROT_READ | PROT_WRITE);
}

Open::~Open() {
  Memory& memory = Memory::all();
  if (--memory.open_ == 0) memory.protect(closed());
  memory.mutex_.unlock();
}

}  // namespace fake
