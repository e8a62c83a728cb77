#include "live/memory_reader.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace spinloom::live {

Status MemoryReader::read(uint64_t address, uint8_t* to, uint64_t length) const {
  while (length > 0) {
    // The kernel copies less than 2^31 bytes at once.
    const uint64_t now = std::min<uint64_t>(length, uint64_t{1} << 30);
    const iovec local{to, now};
    const iovec remote{reinterpret_cast<void*>(address), now};
    const ssize_t got = process_vm_readv(static_cast<pid_t>(pid_), &local, 1, &remote, 1, 0);
    if (got < 0) {
      return fail(Code::environment, "process_vm_readv of ", now, " B of process ", pid_, ": ", std::strerror(errno));
    }
    if (got == 0)
      return fail(Code::environment, "process_vm_readv of ", now, " B of process ", pid_, " brought nothing");
    address += static_cast<uint64_t>(got);
    to += got;
    length -= static_cast<uint64_t>(got);
  }
  return {};
}

Status MemoryReader::probe(uint64_t address, uint64_t value) const {
  uint64_t found = 0;
  SPL_TRY(read(address, reinterpret_cast<uint8_t*>(&found), sizeof found));
  if (found == value) return {};
  return fail(Code::environment, "process ", pid_, " has another value there: it is in another process namespace");
}

}  // namespace spinloom::live
