// Action - what the engine asks of its driver.
//
// Contract: the driver performs actions in the order given. Actions carry the work they stand for
//   (entries searched, bytes), so that the simulator can price them; live drivers ignore it. The engine
//   never waits: what takes time comes back as one of its on_... calls.
// Threads: plain values. Time: none.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "nic/atomic.hpp"
#include "nic/context.hpp"
#include "nic/event.hpp"
#include "nic/ids.hpp"
#include "nic/packet.hpp"

namespace spinloom::nic {

// Handler execution request (HER): all that a driver needs to run one handler.
struct Her {
  HerId id;
  HandlerKind kind = HandlerKind::payload;
  ContextId context;
  HpuId hpu;    // assigned when the handler starts
  VhpuId vhpu;  // virtual HPU of the context; the HPU itself under the default policy
  uint64_t offset = 0;          // the payload's offset in the message, without the user header
  PayloadRef payload;  // without the user header; header handlers get the user header, completion handlers nothing
  uint64_t message_length = 0;  // with the user header; for a get, the bytes that it asks for
  Operation operation = Operation::put;  // for header handlers
  uint64_t entry_offset = 0;    // offset of the message in its entry; for header and payload handlers
  Rank target;                  // this and the next fields: for header handlers
  Rank source;
  uint64_t match_bits = 0;
  uint64_t hdr_data = 0;
  uint64_t dropped_bytes = 0;   // for completion handlers
  bool flow_control = false;    // for completion handlers
  bool outbound = false;        // for payload handlers: an empty packet of a process-put, which the handler fills
};

// Sends a packet. The driver answers by on_packet_sent(message) when it has read the last byte of the message's
// buffer. An acknowledgement (operation ack) is one packet, the last of its message; it has no buffer and no
// on_packet_sent.
struct Send {
  Packet packet;
  bool last = false;
  bool from_device = false;  // the payload lies in a handler's memory; the handler waits until it has been read
  bool by_handler = false;   // a handler asked for this packet
  // The driver reads the payload, NicLimits::at_once_bytes at most, before it performs the next action; there is no
  // on_packet_sent.
  bool at_once = false;
  std::vector<PayloadRef> pieces = {};  // streaming puts: if not empty, the payload's bytes, in this order
  // Process-puts: the payload lies in this slot of the outbound buffer. When the driver has read it, it calls
  // on_packet_left(slot) instead of on_packet_sent. Packets of such messages leave in the order of their actions.
  OutboundSlotId slot = {};
};
// Copies the pieces of a payload, in order, to one place.
inline void gather(const std::vector<PayloadRef>& pieces, uint8_t* to) {
  for (const PayloadRef& piece : pieces) {
    std::memcpy(to, piece.bytes, piece.length);
    to += piece.length;
  }
}
// Copies a packet into the packet buffer and takes it to the scheduler. The driver then calls on_her_ready(her).
struct BufferPacket {
  HerId her;
  uint64_t bytes = 0;
};
// Starts a handler on her.hpu. A completion handler comes without a BufferPacket, because it has no packet. The
// driver calls on_handler_call for every call of the handler, and on_handler_done at its end.
struct RunHandler {
  Her her;
};
// Answers a handler's call.
struct Resume {
  HerId her;
  uint32_t value = 0;
};
// The source of the host address of a write.
enum class Scatter : uint8_t {
  none,    // no scatter list
  held,    // an element of the scatter list that the NIC holds
  refill,  // the first of the next NicLimits::iovec_entries elements, which the NIC must read from the host first
};
// Writes to host memory, from a packet (default path) or for a handler. The source is read when the DMA is served.
// The driver calls on_dma_done(dma) at the end; if the write blocks its handler, it calls on_dma_read(dma) before
// that, when the source has been read.
struct DmaWrite {
  DmaId dma;
  uint8_t* host = nullptr;
  PayloadRef source;
  HerId her;
  Scatter scatter = Scatter::none;
  bool blocking = false;
};
// Reads from host memory into a handler's memory. The driver calls on_dma_done(dma) when the bytes are there.
struct DmaRead {
  DmaId dma;
  const uint8_t* host = nullptr;
  uint8_t* nic = nullptr;
  uint64_t length = 0;
  HerId her;
};
// Performs an operation on host memory, indivisibly. `width` bytes at `host`, naturally aligned, are copied to
// `before` (8 bytes, zero-extended) and then replaced: compare_swap stores `operand` if they equal `compare`,
// fetch_add stores their sum with `operand`. The driver calls on_dma_done(dma) when `before` is there.
enum class AtomicKind : uint8_t { compare_swap, fetch_add };
struct DmaAtomic {
  DmaId dma;
  AtomicKind kind = AtomicKind::fetch_add;
  uint8_t* host = nullptr;
  uint32_t width = 8;
  uint64_t compare = 0;
  uint64_t operand = 0;
  uint8_t* before = nullptr;
  HerId her;
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
// Copies a packet's bytes into the memory of a waiting handler. The driver calls on_dma_done(dma) at the end.
struct StorePacket {
  DmaId dma;
  uint8_t* local = nullptr;
  PayloadRef source;
  HerId her;
};
// Does what DmaAtomic does, at once, on 8 bytes of handler memory. The answer to the handler's call is 1 if
// compare_swap has swapped, otherwise 0.
struct LocalAtomic {
  AtomicKind kind = AtomicKind::fetch_add;
  uint8_t* local = nullptr;
  uint64_t compare = 0;
  uint64_t operand = 0;
  uint8_t* before = nullptr;  // null: the caller does not want the value
  HerId her;
};
// Stores words into a running handler's memory before its call is answered.
struct StoreLocal {
  uint8_t* local = nullptr;
  std::array<uint64_t, 2> words{};
};
// A line of text that a handler prints for its author.
struct DebugLine {
  HandlerKind kind = HandlerKind::payload;
  HpuId hpu;
  std::string text;
  uint32_t value = 0;
};
// Writes to NIC memory the bytes that the host sent along with a command.
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
// Asks for one call of on_continue, because more work is queued (triggered commands).
struct Continue {};

using Action =
    std::variant<Send, BufferPacket, RunHandler, Resume, DmaWrite, DmaRead, DmaAtomic, LocalAtomic, StoreLocal,
                 DebugLine, WriteNicMemory, PostEvent, PostCounter, Answer, Continue, ApplyAtomic, StorePacket>;

// The work that a call stood for; the simulator turns it into service time of the unit that did the work.
struct Work {
  uint32_t entries_searched = 0;  // matching entries compared
  bool matched_by_message = false;  // a later packet, found by its message instead of the lists
};

// The results of one call. Reused between calls: clear() keeps the storage.
struct Actions {
  std::vector<Action> list;
  Work work;

  // Makes an action in its place. Most actions are far smaller than the largest, and a copy would wait for the bytes
  // just written.
  template <class T, class... Parts>
  T& add(Parts&&... parts) {
#ifdef __cpp_aggregate_paren_init
    return *std::get_if<T>(&list.emplace_back(std::in_place_type<T>, std::forward<Parts>(parts)...));
#else  // for Clang before 16
    return *std::get_if<T>(&list.emplace_back(T{std::forward<Parts>(parts)...}));
#endif
  }

  void clear() {
    list.clear();
    work = {};
  }
};

}  // namespace spinloom::nic
