// WholePut - a put that came in one packet and goes straight to its entry's memory: makes its event.
//
// Contract: both short ways for such puts (nic_delivery, nic_quick) make their events here.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>

#include "nic/portals/event.hpp"
#include "nic/portals/match_list.hpp"

namespace spinloom::nic {

struct WholePut {
  Rank source;
  uint32_t user = 0;
  uint64_t match_bits = 0;
  uint64_t remote_offset = 0;
  uint64_t hdr_data = 0;
  uint64_t requested_bytes = 0;  // rlength
  uint64_t taken_bytes = 0;  // mlength
  uint64_t offset = 0;  // offset in the entry

  // Fills in `event`, which is new.
  void fill(Event& event, const ListedEntry& listed) const {
    event.kind = EventKind::put;
    event.initiator = source;
    event.user = user;
    event.portal = listed.portal;
    event.entry = listed.id;
    event.match_bits = match_bits;
    event.requested_bytes = requested_bytes;
    event.manipulated_bytes = taken_bytes;
    event.remote_offset = remote_offset;
    event.start = reinterpret_cast<uint64_t>(listed.entry.start) + offset;
    event.hdr_data = hdr_data;
    event.user_ptr = listed.entry.user_ptr;
  }
};

}  // namespace spinloom::nic
