// Quick puts - puts that find nothing to decide, at their initiator and at their target.
//
// Contract: a driver whose transports deliver at once asks the engine whether a put is one (Nic::quick_put, then
//   Nic::quick_sent when its bytes are on their way; Nic::quick_landing for a packet that has come). What follows is
//   what on_put and on_packet, with the ends of what they ask for, would have done: the same counts and events. Where
//   the answer is no, nothing has happened, and those are called.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>

#include "nic/event.hpp"
#include "nic/ids.hpp"

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
  QueueId queue;         // of its descriptor: no event goes there, but it must exist where one is named
  CounterId counter;     // of its descriptor, too
  uint64_t counted = 0;  // what the send adds to the counter
};

// A counter's new value, for the host.
struct QuickCount {
  CounterId counter;  // none: nothing is counted
  CounterValue value;
};

// What is to be done for a packet: copy, then post the event, then publish the count.
struct QuickLanding {
  uint8_t* host = nullptr;
  uint64_t length = 0;
  QueueId queue;  // none: there is no event
  Event event;    // only where there is a queue
  QuickCount count;
};

}  // namespace spinloom::nic
