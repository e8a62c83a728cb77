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

// Handler execution request: all a driver needs to run one handler.
struct Her {
  HerId id;
  HandlerKind kind = HandlerKind::payload;
  ContextId context;
  HpuId hpu;    // assigned when the handler runs
  VhpuId vhpu;  // of the context; equals the HPU under the default policy
  uint64_t offset = 0;          // of the payload in the message, without its user header
  PayloadRef payload;           // without the user header; header handlers: the user header; completion: empty
  uint64_t message_length = 0;  // with the user header; of a get, the bytes it asks for
  Operation operation = Operation::put;  // header
  uint64_t entry_offset = 0;    // of the message in its entry; header and payload
  Rank target;                  // header: to whom and by whom it was sent, and what matched
  Rank source;
  uint64_t match_bits = 0;
  uint64_t hdr_data = 0;
  uint64_t dropped_bytes = 0;   // completion
  bool flow_control = false;    // completion
  bool outbound = false;        // payload: an empty packet of a process-put, which the handler fills
};

// Driver -> engine later: on_packet_sent(message) when the last byte of the buffer has been read. `from_device`: the
// payload lies in the memory of a handler that waits for that. `by_handler`: a handler asked for it. An acknowledgement
// (operation ack) is one packet, the last of its message, has no buffer and no on_packet_sent.
// `pieces` (streaming puts): not empty, the payload's bytes lie there, in this order; the driver reads them together.
// `slot` (process-puts): the payload lies in that slot of the outbound buffer; the driver calls on_packet_left(slot)
// when it has been read, and no on_packet_sent. Packets of such messages leave in the order of their actions.
// `at_once`: the driver reads the payload, NicLimits::at_once_bytes at most, before it performs the next action; there
// is no on_packet_sent.
struct Send {
  Packet packet;
  bool last = false;
  bool from_device = false;
  bool by_handler = false;
  bool at_once = false;
  std::vector<PayloadRef> pieces = {};
  OutboundSlotId slot = {};
};
// Puts the pieces of a payload together.
inline void gather(const std::vector<PayloadRef>& pieces, uint8_t* to) {
  for (const PayloadRef& piece : pieces) {
    std::memcpy(to, piece.bytes, piece.length);
    to += piece.length;
  }
}
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
// Completed by on_dma_done(dma); one that blocks its handler also by on_dma_read(dma), before that, when its source has
// been read.
struct DmaWrite {
  DmaId dma;
  uint8_t* host = nullptr;
  PayloadRef source;
  HerId her;
  Scatter scatter = Scatter::none;
  bool blocking = false;
};
// Read from host memory into a handler's. Completed by on_dma_done(dma), when the bytes are there.
struct DmaRead {
  DmaId dma;
  const uint8_t* host = nullptr;
  uint8_t* nic = nullptr;
  uint64_t length = 0;
  HerId her;
};
// An operation on host memory that nothing else comes in between of. `width` bytes at `host`, naturally aligned, are
// copied to `before`, 8 bytes, zero-extended; then replaced: compare_swap by `operand` where they equal `compare`,
// fetch_add by their sum with `operand`. Completed by on_dma_done(dma), when `before` is there.
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
// An atomic of Portals 4 on host memory that nothing else comes in between of: `source` holds whole elements. `before`:
// null, or where the target's go first, on the NIC. Completed by on_dma_done(dma), when memory is changed and `before`
// is there. `pieces`: not empty, the elements lie there, in this order; one may be cut.
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
// A packet's bytes into the memory of a handler that waits for them. Completed by on_dma_done(dma).
struct StorePacket {
  DmaId dma;
  uint8_t* local = nullptr;
  PayloadRef source;
  HerId her;
};
// What DmaAtomic does, on 8 bytes of handler memory, performed at once. It answers the handler's call: compare_swap 1
// where it swapped and 0 otherwise, fetch_add 0.
struct LocalAtomic {
  AtomicKind kind = AtomicKind::fetch_add;
  uint8_t* local = nullptr;
  uint64_t compare = 0;
  uint64_t operand = 0;
  uint8_t* before = nullptr;  // null: not wanted
  HerId her;
};
// Bytes for a running handler's memory, before its call is answered.
struct StoreLocal {
  uint8_t* local = nullptr;
  std::array<uint64_t, 2> words{};
};
// What a handler says for its author to read.
struct DebugLine {
  HandlerKind kind = HandlerKind::payload;
  HpuId hpu;
  std::string text;
  uint32_t value = 0;
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

using Action =
    std::variant<Send, BufferPacket, RunHandler, Resume, DmaWrite, DmaRead, DmaAtomic, LocalAtomic, StoreLocal,
                 DebugLine, WriteNicMemory, PostEvent, PostCounter, Answer, Continue, ApplyAtomic, StorePacket>;

// Work that a call stood for; the simulator turns it into service time of the unit that did it.
struct Work {
  uint32_t entries_searched = 0;  // matching entries compared
  bool matched_by_message = false;  // a later packet: found by its message, not by the lists
};

// One call's results. Reused between calls: clear() keeps the storage.
struct Actions {
  std::vector<Action> list;
  Work work;

  // One more, made in its place: most are far smaller than the largest, and each copy would wait for what was just
  // written.
  template <class T, class... Parts>
  T& add(Parts&&... parts) {
#ifdef __cpp_aggregate_paren_init
    return *std::get_if<T>(&list.emplace_back(std::in_place_type<T>, std::forward<Parts>(parts)...));
#else  // Clang before 16
    return *std::get_if<T>(&list.emplace_back(T{std::forward<Parts>(parts)...}));
#endif
  }

  void clear() {
    list.clear();
    work = {};
  }
};

}  // namespace spinloom::nic
