// Header handlers: packets wait for their decision, then go the way that it says.
//
// A message whose context has a header handler is undecided until that handler has ended. Its packets are buffered as
// packets for payload handlers are, and parked. The header handler starts when the first packet is in the buffer,
// because it reads the user header there; for a message without bytes it starts at once (nic_message). No other handler
// of the message runs with it. After its end every parked packet, and every later one, goes the same way.
#include <algorithm>
#include <utility>

#include "nic/portals/nic_impl.hpp"
#include "spinloom/handler.h"

namespace spinloom::nic {

// Sends a packet that has come into the packet buffer the way that its message goes. Parks it if the message is
// undecided.
void Nic::Impl::route(HerId id, Actions& out) {
  Execution& execution = executions[id];
  if (execution.owner.kind == OwnerKind::process_put) return enqueue(execution);
  const uint32_t slot = execution.owner.slot;
  Message& message = messages[slot];
  SPL_ASSERT(execution.stage < Stage::running && message.path != Path::waiting, "HER ", id);
  if (message.path == Path::undecided) {
    executions.ready(execution);
    (message.parked_last == no_slot ? message.parked_first : executions[HerId{message.parked_last}].next) = id.value;
    message.parked_last = id.value;
    if (execution.packet_offset == 0) start_header_handler(slot, execution.her.payload);
    return;
  }
  if (message.path == Path::handlers) {
    Her& her = execution.her;
    const uint64_t user_header_bytes = contexts.find(message.context)->user_header_bytes;
    if (execution.packet_offset > 0) {
      her.offset = execution.packet_offset - user_header_bytes;
      return enqueue(execution);
    }
    if (her.payload.length > user_header_bytes) {
      her.payload.bytes += user_header_bytes;
      her.payload.length -= user_header_bytes;
      return enqueue(execution);
    }
  }
  if (message.path == Path::direct) {
    land(slot, execution.her.payload, execution.packet_offset, Executions::take_bytes(execution), out);
  }
  if (message.path == Path::dropped) message.dropped_bytes += execution.buffer_bytes;
  drop_execution(id);
  advance(slot, out);
}

void Nic::Impl::start_header_handler(uint32_t slot, const PayloadRef& first_payload) {
  Message& message = messages[slot];
  SPL_ASSERT(!message.header_started && message.path == Path::undecided, "message ", message.id);
  message.header_started = true;
  Execution& execution = executions.open({OwnerKind::incoming, slot}, HandlerKind::header, message.context);
  Her& her = execution.her;
  her.payload = first_payload;
  her.payload.length = std::min<uint64_t>(first_payload.length, contexts.find(message.context)->user_header_bytes);
  her.message_length = message.requested;
  her.request = request_type_of(message.operation);
  her.target = rank;
  her.source = message.source;
  her.match_bits = message.fields.match_bits;
  her.entry_offset = message.offset;
  her.hdr_data = message.fields.hdr_data;
  ++message.hers_open;
  enqueue(execution);
}

void Nic::Impl::header_done(uint32_t slot, HandlerEnd end, uint32_t code, Actions& out) {
  Message& message = messages[slot];
  SPL_ASSERT(message.header_started && message.path == Path::undecided, "message ", message.id);
  message.path = Path::dropped;
  if (end == HandlerEnd::returned && (code == PROCESS_DATA || code == PROCESS_DATA_PENDING)) {
    const bool has_payload_handler = contexts.find(message.context)->payload_entry.has_value();
    message.path = has_payload_handler ? Path::handlers : Path::direct;
  } else if (end == HandlerEnd::returned && (code == PROCEED || code == PROCEED_PENDING)) {
    message.path = Path::direct;
  } else if (end != HandlerEnd::returned || (code != DROP && code != DROP_PENDING)) {
    message.fail(end, code);
  }
  message.pending =
      end == HandlerEnd::returned && (code == PROCESS_DATA_PENDING || code == PROCEED_PENDING || code == DROP_PENDING);
  // A get brings no bytes for handlers: the decision is only whether it is answered.
  if (message.operation == Operation::get) {
    if (message.path == Path::dropped) message.dropped_bytes = message.room_bytes;
    if (message.path == Path::handlers) message.path = Path::direct;
  }
  if (message.path == Path::direct) {
    message.landing_bytes = message.room_bytes;
    fail_if_memory_is_missing(message);
  }
  uint32_t parked = std::exchange(message.parked_first, no_slot);
  message.parked_last = no_slot;
  while (parked != no_slot) {
    const uint32_t next = std::exchange(executions[HerId{parked}].next, no_slot);
    route(HerId{parked}, out);
    parked = next;
  }
}

}  // namespace spinloom::nic
