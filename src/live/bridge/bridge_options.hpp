// BridgeOptions - how much a bridge lets travel at a time, and how its gateways forward.
//
// Invariants: all ranks of a job have the same. What may come after a stop finds room in the receiver's backlog
//   (backlog.hpp).
#pragma once

#include <cstdint>

#include "base/units.hpp"

namespace spinloom::live {

struct BridgeOptions {
  // The most bytes of a packet that one frame carries. Handlers see packets of 4 KiB, and a piece is some of them. A
  // frame fits into a long datagram.
  uint64_t piece_bytes = 12 << 10;
  uint32_t window_frames = 256;  // of one class between two ranks, under way
  uint64_t window_bytes = 1 << 20;
  // A gateway keeps the pieces of a message until it has the whole message or half a window of it.
  bool stores = false;
  Time hold_most{1'000'000'000};  // 1 ms: a gateway keeps no piece longer
  Time credit_after{1'000'000'000};  // 1 ms: credit leaves then, if nothing has taken it along
};

}  // namespace spinloom::live
