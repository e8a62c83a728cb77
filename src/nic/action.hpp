// Action - what the engine asks of its driver.
//
// Contract: the driver performs actions in the order given. Actions carry the work they stand for
//   (entries searched, bytes), so that the simulator can price them; live drivers ignore it. The engine
//   never waits: what takes time comes back as one of its on_... calls.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "nic/event.hpp"
#include "nic/ids.hpp"
#include "nic/packet.hpp"

namespace spinloom::nic {

enum class HandlerKind : uint8_t { header, payload, completion };

// Handler execution request: all a driver needs to run one handler.
struct Her {
  HerId id;
  HandlerKind kind = HandlerKind::payload;
  ContextId context;
  HpuId hpu;    // assigned when the handler runs
  VhpuId vhpu;  // of the context; equals the HPU under the default policy
  uint64_t offset = 0;          // of the packet's payload in the message
  PayloadRef payload;           // empty for completion handlers
  uint64_t message_length = 0;
  uint64_t dropped_bytes = 0;   // completion
  bool flow_control = false;    // completion
};

// Driver -> engine later: on_packet_sent(message) when the last byte of the buffer has been read. An acknowledgement
// (operation ack) is one packet, the last of its message, has no buffer and no on_packet_sent.
struct Send {
  Packet packet;
  bool last = false;
};
// Copy a packet into the packet buffer and take it to the scheduler; then call on_her_ready(her).
struct BufferPacket {
  HerId her;
  uint64_t bytes = 0;
};
// Start a handler on her.hpu (a completion handler comes without BufferPacket: it has no packet); every call it makes
// -> on_handler_call, its end -> on_handler_done.
struct RunHandler {
  Her her;
};
// Answer to a handler's call.
struct Resume {
  HerId her;
  uint32_t value = 0;
};
// Where the host address of a write comes from.
enum class Scatter : uint8_t {
  none,    // not from a scatter list
  held,    // from an element that the NIC holds
  refill,  // from the first of the next NicLimits::iovec_entries elements, which the NIC reads from the host first
};
// Write to host memory: from a packet (default path) or for a handler. Bytes are read when served.
// Completed by on_dma_done(dma).
struct DmaWrite {
  DmaId dma;
  uint8_t* host = nullptr;
  PayloadRef source;
  HerId her;
  Scatter scatter = Scatter::none;
};
struct DmaRead {
  DmaId dma;
  const uint8_t* host = nullptr;
  uint8_t* nic = nullptr;
  uint64_t length = 0;
  HerId her;
};
// Write into NIC memory what the host sent along with a command.
struct WriteNicMemory {
  uint64_t offset = 0;
  std::vector<uint8_t> bytes;
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
// Call on_continue once: more work is queued (triggered commands).
struct Continue {};

using Action = std::variant<Send, BufferPacket, RunHandler, Resume, DmaWrite, DmaRead, WriteNicMemory, PostEvent,
                            PostCounter, Answer, Continue>;

// Work that a call stood for; the simulator turns it into service time of the unit that did it.
struct Work {
  uint32_t entries_searched = 0;  // matching entries compared
  bool matched_by_message = false;  // a later packet: found by its message, not by the lists
};

// One call's results. Reused between calls: clear() keeps the storage.
struct Actions {
  std::vector<Action> list;
  Work work;

  void clear() {
    list.clear();
    work = {};
  }
};

}  // namespace spinloom::nic
