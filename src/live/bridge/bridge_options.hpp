// BridgeOptions - limits on what a bridge has under way, and how its gateways forward.
//
// Invariants: all ranks of a job have the same sizes and windows; `stores` and `hold_max` concern one gateway alone. A
//   window fits into the receiver's backlog (backlog.hpp), which holds what still arrives after a stop.
#pragma once

#include <cstdint>

#include "base/units.hpp"

namespace spinloom::live {

struct BridgeOptions {
  // The most payload bytes in one frame. Handlers see packets of 4 KiB, and a piece is a multiple of that. A frame fits
  // into a long datagram.
  uint64_t piece_bytes = 12 << 10;
  uint32_t window_frames = 256;  // the most frames of one class that are under way from one rank to another
  uint64_t window_bytes = 1 << 20;
  // True: a gateway keeps the pieces of a message until it has the whole message or half a window of it.
  bool stores = false;
  Time hold_max{1'000'000'000};  // 1 ms: the longest time for which a gateway keeps a piece
  Time credit_after{1'000'000'000};  // 1 ms: then credit gets a frame of its own, if no other frame has carried it
};

}  // namespace spinloom::live
