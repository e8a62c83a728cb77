#include "portals/interface/probed_memory.hpp"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace spinloom::portals {
namespace {

constexpr uint64_t page_bytes = 4096;  // the smallest page size
constexpr uint64_t many_pages = 16;    // one call for all of more pages is cheaper
constexpr int populate_read = 22;      // MADV_POPULATE_READ, since Linux 5.14
constexpr int populate_write = 23;     // MADV_POPULATE_WRITE

// Has the kernel read 8 B as a signal mask. The call then fails, because -1 is no way to change the mask: only EFAULT
// means that the word cannot be read. At address 0 the kernel would read nothing, so the next word of that page is
// used.
bool word_is_readable(uint64_t address) {
  const uint64_t word = std::max(address & ~uint64_t{7}, uint64_t{8});
  return syscall(SYS_rt_sigprocmask, -1, word, nullptr, sizeof(uint64_t)) == 0 || errno != EFAULT;
}

// Has the kernel add 0 to 4 B, as part of a futex call that wakes nobody. Only EFAULT means that they cannot be
// written.
bool word_is_writable(uint64_t address) {
  static uint32_t nobody_waits = 0;
  constexpr unsigned add_nothing = FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0);
  return syscall(SYS_futex, &nobody_waits, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0L, address & ~uint64_t{3},
                 add_nothing) >= 0 ||
         errno != EFAULT;
}

}  // namespace

bool ProbedMemory::reaches(const void* start, uint64_t length, nic::Access access) {
  const auto first = reinterpret_cast<uint64_t>(start);
  if (length == 0) return true;
  if (length - 1 > UINT64_MAX - first) return false;
  const uint64_t last_page = (first + (length - 1)) / page_bytes;
  const bool writes = access == nic::Access::write;
  if (last_page - first / page_bytes >= many_pages) {
    auto* const begin = reinterpret_cast<void*>(first / page_bytes * page_bytes);
    const uint64_t bytes = (last_page - first / page_bytes + 1) * page_bytes;
    if (madvise(begin, bytes, writes ? populate_write : populate_read) == 0) return true;
    // The call may be unknown, or may not support this kind of memory: each page is tried by itself.
  }
  uint64_t address = first;
  for (uint64_t page = first / page_bytes; page <= last_page; address = ++page * page_bytes) {
    if (!(writes ? word_is_writable(address) : word_is_readable(address))) return false;
  }
  return true;
}

}  // namespace spinloom::portals
