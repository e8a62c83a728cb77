#include "ethernet/host/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace spinloom::host {

Result<SharedMemory> SharedMemory::create(uint64_t bytes) {
  const int descriptor = memfd_create("spinloom-nic", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) return fail(Code::environment, "memory to share: ", std::strerror(errno));
  rlimit file_limit{};  // ftruncate beyond this limit would end the process
  const bool fits = getrlimit(RLIMIT_FSIZE, &file_limit) != 0 || bytes <= file_limit.rlim_cur;
  if (!fits) errno = EFBIG;
  // The seal keeps either process from shrinking memory that the other one uses.
  if (!fits || ftruncate(descriptor, static_cast<off_t>(bytes)) != 0 ||
      fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
    const int why = errno;
    close(descriptor);
    return fail(Code::exhausted, bytes, " B of memory to share: ", std::strerror(why));
  }
  return map(descriptor, bytes);
}

Result<SharedMemory> SharedMemory::map(int descriptor, uint64_t bytes) {
  SharedMemory memory;
  memory.descriptor_ = descriptor;
  struct stat file{};
  if (fstat(descriptor, &file) != 0 || static_cast<uint64_t>(file.st_size) < bytes || bytes == 0) {
    return fail(Code::environment, "the memory that the NIC shares has ", file.st_size, " B, not ", bytes);
  }
  void* const start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (start == MAP_FAILED) return fail(Code::exhausted, "mapping ", bytes, " B: ", std::strerror(errno));
  memory.start_ = static_cast<uint8_t*>(start);
  memory.length_ = bytes;
  return memory;
}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(start_, other.start_);
  std::swap(length_, other.length_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

SharedMemory::~SharedMemory() {
  if (start_ != nullptr) munmap(start_, length_);
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace spinloom::host
