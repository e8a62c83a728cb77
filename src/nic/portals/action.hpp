// Action - a request of the engine to its driver.
//
// Contract: the driver performs actions in the order given. Actions carry the work they stand for
//   (entries searched, bytes), so that the simulator can price them; live drivers ignore it. The engine
//   never waits: the driver reports the end of an action that takes time by one of its on_... calls.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "nic/portals/event.hpp"
#include "nic/portals/ids.hpp"
#include "nic/portals/packet.hpp"
#include "nic/spin/action.hpp"
#include "nic/spin/atomic.hpp"
#include "nic/spin/her.hpp"
#include "nic/spin/iovec.hpp"

namespace spinloom::nic {

// Sends a packet. The driver answers by on_packet_sent(message) when it has read the last byte of the message's
// buffer. An acknowledgement (operation ack) is one packet, the last of its message; it has no buffer and no
// on_packet_sent.
struct Send {
  Packet packet;
  bool last = false;
  // The payload lies on the NIC: in the memory of a handler, which waits until it has been read, or in a buffer of the
  // engine (the values before a fetching atomic).
  bool from_device = false;
  bool by_handler = false;  // the packet belongs to a put, get or atomic of a handler; false for process-puts
  // The driver reads the payload, NicLimits::at_once_bytes at most, before it performs the next action; there is no
  // on_packet_sent.
  bool at_once = false;
  std::vector<PayloadRef> pieces = {};  // streaming puts: if not empty, the payload's bytes, in this order
  // Process-puts: the payload lies in this slot of the outbound buffer. When the driver has read it, it calls
  // on_packet_left(slot) instead of on_packet_sent. Packets of such messages leave in the order of their actions.
  OutboundSlotId slot = {};
};
// Starts a handler on her.hpu. Header and completion handlers have no BufferPacket of their own. The driver calls
// on_handler_call for every call of the handler, and on_handler_done at its end.
struct RunHandler {
  Her her;
};
// Performs an atomic of Portals 4 on host memory, indivisibly; `source` holds whole elements. `before` is null, or
// memory on the NIC that first gets the target's elements. `pieces`: if not empty, the target's elements lie in these
// pieces, in order; a piece may cut an element. The driver calls on_dma_done(dma) when memory has changed and
// `before` is there.
struct ApplyAtomic {
  DmaId dma;
  AtomicOperation operation = AtomicOperation::sum;
  Datatype datatype = Datatype::int64;
  AtomicOperand operand{};
  uint8_t* host = nullptr;
  PayloadRef source;
  uint8_t* before = nullptr;
  std::vector<IovecElement> pieces = {};
};
struct PostEvent {
  QueueId queue;
  Event event;
};
struct PostCounter {
  CounterId counter;
  CounterValue value;
};
struct Answer {
  uint64_t token = 0;
  Result<uint64_t> result = uint64_t{0};
};
// Asks for one call of on_continue, because more work is queued: fired commands, or packets to send.
struct Continue {};

using Action =
    std::variant<Send, BufferPacket, RunHandler, Resume, DmaWrite, DmaRead, DmaAtomic, LocalAtomic, StoreLocal,
                 DebugLine, WriteNicMemory, PostEvent, PostCounter, Answer, Continue, ApplyAtomic, StorePacket>;

// The work that a call stood for; the simulator turns it into service time of the unit that did the work.
struct Work {
  uint32_t entries_searched = 0;  // matching entries compared
  bool matched_by_message = false;  // found by its message instead of the lists: a later packet, or an answer
};

// The results of one call.
struct Actions : ActionList<Action> {
  Work work;

  void clear() {
    ActionList::clear();
    work = {};
  }
};

}  // namespace spinloom::nic
