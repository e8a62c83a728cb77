// Quick puts - puts without any decision to make, at their initiator and at their target.
//
// Contract: a driver whose transports deliver at once asks the engine whether a put is quick: Nic::quick_put, then
//   Nic::quick_sent when its bytes are on their way; Nic::quick_landing for a packet that has come. The driver then
//   does what the results say, with the same counts and events as on_put, on_packet and the calls that follow them.
//   If the answer is no, nothing has happened, and the driver calls on_put or on_packet.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>

#include "nic/portals/event.hpp"
#include "nic/portals/ids.hpp"

namespace spinloom::nic {

// A put without acknowledgement and without a send event, whose bytes lie together.
struct QuickPut {
  const uint8_t* bytes = nullptr;
  uint64_t length = 0;
  Rank target;
  PortalIndex portal;
  uint64_t match_bits = 0;
  uint64_t remote_offset = 0;
  uint64_t hdr_data = 0;
  QueueId queue;         // the descriptor's queue: gets no event, but must exist if it is named
  CounterId counter;     // the descriptor's counter: if it is named, it must exist, and no command may wait for it
  uint64_t counted = 0;  // the amount that the send adds to the counter
  bool sparse = false;   // parts of the memory may not be there (HostMemory)
};

// A counter's new value, for the host.
struct QuickCount {
  CounterId counter;  // none: nothing is counted
  CounterValue value;
};

// The work for a packet: copy, then post the event, then publish the count.
struct QuickLanding {
  uint8_t* host = nullptr;
  uint64_t length = 0;
  QueueId queue;  // none: there is no event
  Event event;    // used only if there is a queue
  QuickCount count;
};

}  // namespace spinloom::nic
