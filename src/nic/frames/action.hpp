// Action - a request of the engine of an Ethernet NIC to its driver.
//
// Contract: as nic/spin/action.hpp; the driver performs actions in the order given. It reports the end of an action
//   that takes time by one of the engine's on_... calls.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <variant>

#include "nic/frames/egress.hpp"
#include "nic/spin/action.hpp"
#include "nic/spin/her.hpp"

namespace spinloom::frames {

using namespace spin;

using PacketId = Id<struct PacketTag>;  // a frame in packet memory

// Copies a frame to packet memory. The driver calls on_stored(packet, place) when it is there.
struct StoreFrame {
  PacketId packet;
  uint32_t address = 0;  // an offset in packet memory
  PayloadRef bytes;
};
// Hands a frame to the host's network stack. The bytes are read before the next action.
struct ToHost {
  PayloadRef bytes;
  bool by_handler = false;
};
// Puts a frame on the wire. The driver calls on_transmitted(frame) when its bytes have been read, or
// on_not_sent(frame).
struct Transmit {
  EgressFrame frame;
};
// Starts a handler on her.hpu. The driver calls on_handler_call for every call of the handler, and on_handler_done.
struct RunHandler {
  Her her;
};
// The context's initialisation handler has ended.
struct Initialised {
  ContextId context;
  bool succeeded = false;
};

using Action = std::variant<StoreFrame, ToHost, Transmit, RunHandler, Resume, DmaWrite, DmaRead, DmaAtomic, LocalAtomic,
                            StoreLocal, DebugLine, Initialised>;
using Actions = ActionList<Action>;

}  // namespace spinloom::frames
