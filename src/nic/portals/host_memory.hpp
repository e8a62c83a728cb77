// HostMemory - a driver's knowledge of the memory of its host: whether all of a range is there.
//
// Contract: the engine never looks at memory. Before it lets an operation touch memory that may have holes (`sparse` of
//   an entry or of a descriptor's operation), it asks whether the whole range can be read or written. The answer holds
//   at the time of the call; what the host takes away afterwards is the host's fault.
// Threads: the owner of the NIC. Time: none.
#pragma once

#include <cstdint>

#include "nic/portals/ids.hpp"
#include "nic/spin/iovec.hpp"

namespace spinloom::nic {

// An atomic counts as a write.
enum class Access : uint8_t { read, write };

class HostMemory {
 public:
  virtual ~HostMemory() = default;
  // True if all of these bytes are there. False for a range that goes beyond the last address.
  [[nodiscard]] virtual bool reaches(const void* start, uint64_t length, Access access) = 0;
  [[nodiscard]] bool reaches(const IovecView& list, uint64_t offset, uint64_t length, Access access) {
    for (const IovecElement& piece : pieces_of(list, offset, length)) {
      if (!reaches(piece.base, piece.length, access)) return false;
    }
    return true;
  }
};

}  // namespace spinloom::nic
