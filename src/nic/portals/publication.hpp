// Publication - the entries of a portal that peers use without this NIC's help, and how the NIC ends that.
//
// Contract: a driver whose peers reach this host's memory asks Nic::publish() for the plain entries at the beginning of
//   a portal's priority list. A message that matches one of them first, that the entry permits and that lies in it as
//   a whole needs no decision of the NIC: its bytes go to or come from the entry's memory, and the entry's counter
//   counts. There is no event. Before any of this changes, the NIC calls Publisher::close(). When a portal may have
//   other plain entries than before, it calls note_change(), and the driver may publish again. A portal whose counter
//   had a waiting command is published again when its list changes.
// Invariants: (1) between Nic::publish() and close() the published entries are the first of their list, and stay as
//   they are; (2) the driver counts what peers have done there by CounterInc, before it brings anything else that
//   happened later; (3) close() changes nothing in the NIC.
// Threads: the engine's owner. Time: none.
#pragma once

#include <cstdint>

#include "nic/portals/ids.hpp"

namespace spinloom::nic {

// An entry without decisions. Its options have the meaning of EntryOptions.
struct PlainEntry {
  uint8_t* start = nullptr;
  uint64_t length = 0;
  uint64_t match_bits = 0;
  uint64_t ignore_bits = 0;
  Rank match_rank;
  uint32_t user = any_user;
  bool op_put = false;
  bool op_get = false;
  bool ack_disable = false;
  bool ct_bytes = false;
  CounterId counter;  // none: nothing is counted
  bool operator==(const PlainEntry&) const = default;
};

class Publisher {
 public:
  virtual ~Publisher() = default;
  // Ends the peers' use of the portal's entries. False: a peer is still inside and does not leave, because its process
  // is stopped; the change does not happen then, or the caller is told to try again.
  [[nodiscard]] virtual bool close(PortalIndex portal) = 0;
  virtual void note_change(PortalIndex portal) = 0;
};

}  // namespace spinloom::nic
