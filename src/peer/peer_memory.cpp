#include "peer/peer_memory.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace spinloom::peer {
namespace {

using Call = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

Status transfer(Call call, const char* name, int64_t pid, uint64_t address, uint8_t* here, uint64_t length) {
  while (length > 0) {
    // The kernel copies less than 2^31 bytes at once.
    const uint64_t now = std::min<uint64_t>(length, uint64_t{1} << 30);
    const iovec local{here, now};
    const iovec remote{reinterpret_cast<void*>(address), now};
    const ssize_t done = call(static_cast<pid_t>(pid), &local, 1, &remote, 1, 0);
    if (done <= 0) {
      const char* const why = done < 0 ? std::strerror(errno) : "nothing was copied";
      return fail(Code::environment, name, " of ", now, " B of process ", pid, ": ", why);
    }
    address += static_cast<uint64_t>(done);
    here += done;
    length -= static_cast<uint64_t>(done);
  }
  return {};
}

}  // namespace

Status PeerMemory::read(uint64_t address, uint8_t* to, uint64_t length) const {
  return transfer(process_vm_readv, "process_vm_readv", pid_, address, to, length);
}

Status PeerMemory::write(uint64_t address, const uint8_t* from, uint64_t length) const {
  return transfer(process_vm_writev, "process_vm_writev", pid_, address, const_cast<uint8_t*>(from), length);
}

Status PeerMemory::probe_read(uint64_t address, uint64_t value) const {
  uint64_t found = 0;
  SPL_TRY(read(address, reinterpret_cast<uint8_t*>(&found), sizeof found));
  if (found == value) return {};
  return fail(Code::environment, "process ", pid_, " has another value there: it is in another process namespace");
}

Status PeerMemory::probe_write(uint64_t address, uint64_t value) const {
  SPL_TRY(probe_read(address, value));
  return write(address, reinterpret_cast<const uint8_t*>(&value), sizeof value);
}

}  // namespace spinloom::peer
