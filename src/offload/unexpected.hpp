// UnexpectedBuffer - where messages land whose receive has not been posted yet.
//
// Contract: an overflow entry of a portal that takes any message; the NIC packs them behind each other. A receive that
//   is posted later finds its message here (Receive::finish) and the host unpacks it, because at arrival nobody
//   knew the datatype (SC'19 datatypes paper, section 3.2.6).
// Invariants: (1) the buffer outlives every message in it; (2) it tells the host nothing by itself.
// Threads: the owner of the Interface. Time: none.
#pragma once

#include <cstdint>
#include <vector>

#include "portals/interface.hpp"

namespace spinloom::offload {

class UnexpectedBuffer {
 public:
  explicit UnexpectedBuffer(uint64_t bytes) : bytes_(bytes) {}

  Status post(portals::Interface& interface, nic::PortalIndex portal) {
    nic::Entry entry;
    entry.start = bytes_.data();
    entry.length = bytes_.size();
    entry.ignore_bits = ~uint64_t{0};
    entry.options.manage_local = true;
    entry.options.event_comm_disable = true;
    entry.options.event_unlink_disable = true;
    const auto appended = interface.me_append(portal, entry, nic::ListKind::overflow);
    return appended ? Status() : Status(appended.error());
  }

 private:
  std::vector<uint8_t> bytes_;
};

}  // namespace spinloom::offload
