// UnexpectedBuffer - takes messages whose receive has not been posted yet.
//
// Contract: an overflow entry of a portal that takes any message. The NIC puts the messages behind each other. A
//   receive that is posted later finds its message here (Receive::finish). The host unpacks it, because nobody knew
//   the datatype at arrival (SC'19 datatypes paper, section 3.2.6).
// Invariants: (1) the buffer outlives every message in it; (2) the entry makes no events.
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
