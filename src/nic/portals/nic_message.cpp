// The end of a message: completion handler, events, counters, acknowledgement.
#include <algorithm>

#include "nic/portals/entry_memory.hpp"
#include "nic/portals/nic_impl.hpp"

namespace spinloom::nic {
namespace {

EventKind kind_of(Operation operation) {
  switch (operation) {
    case Operation::get: return EventKind::get;
    case Operation::atomic: return EventKind::atomic;
    case Operation::fetch_atomic: return EventKind::fetch_atomic;
    default: return EventKind::put;
  }
}

}  // namespace

// Takes a message to its next stage when bytes, handlers or DMAs that it waited for are there.
void Nic::Impl::advance(uint32_t slot, Actions& out) {
  Message& message = messages[slot];
  SPL_ASSERT(message.bytes_in <= message.length, message.bytes_in, " of ", message.length);
  if (message.hers_open > 0 || message.bytes_in < message.length || message.path == Path::waiting) return;
  if (message.path == Path::undecided) {
    // A message without bytes has no packet to wait for.
    if (!message.header_started) start_header_handler(slot, {});
    return;
  }
  if (message.completion_wanted && !message.completion_started && !message.stopped) {
    SPL_ASSERT(message.context.exists() && message.entry != no_slot, "message ", message.id);
    message.completion_started = true;
    Execution& execution = executions.open({OwnerKind::incoming, slot}, HandlerKind::completion, message.context);
    Her& her = execution.her;
    her.message_length = message.length;
    her.dropped_bytes = message.dropped_bytes;
    const PortalTable::Portal& portal = *portals.find(message.portal);
    her.flow_control = portal.flow_control && !portal.enabled;
    ++message.hers_open;
    enqueue(execution);  // nothing is buffered first: a completion handler has no packet
    return;
  }
  if (message.dmas.open > 0) return;
  const bool replies = message.operation == Operation::get || message.operation == Operation::fetch_atomic;
  if (replies && !message.reply_started) return start_reply(slot, out);
  if (message.reply_open) return;
  complete(slot, out);
}

Event Nic::Impl::event_of(const Message& message, EventKind kind) const {
  Event event;
  event.kind = kind;
  event.fail = message.failure;
  const ListedEntry& listed = portals.entry(message.entry);
  event.initiator = message.source;
  event.user = message.fields.user;
  event.portal = message.portal;
  event.entry = listed.id;
  event.match_bits = message.fields.match_bits;
  event.requested_bytes = message.requested;
  event.remote_offset = message.fields.remote_offset;
  event.start = address_at(listed, message.offset);
  event.hdr_data = message.fields.hdr_data;
  event.user_ptr = listed.entry.user_ptr;
  event.in_overflow = listed.list == ListKind::overflow;
  event.dropped_bytes = message.dropped_bytes;
  event.atomic = message.fields.request.atomic;
  event.datatype = message.fields.request.datatype;
  return event;
}

void Nic::Impl::post_put(const Message& message, uint64_t manipulated, Actions& out) {
  const Entry& entry = portals.entry(message.entry).entry;
  const bool failed = message.failure != Fail::ok;
  if (!entry.options.event_comm_disable && (failed || !entry.options.event_success_disable)) {
    Event event = event_of(message, kind_of(message.operation));
    event.manipulated_bytes = manipulated;
    queues.post(portals.find(message.portal)->queue, event, out);
  }
  if (!entry.options.ct_comm) return;
  CounterValue by;
  (failed ? by.failure : by.success) = failed || !entry.options.ct_bytes ? 1 : manipulated;
  triggers.count(entry.counter, by, out);
}

void Nic::Impl::complete(uint32_t slot, Actions& out) {
  Message& message = messages[slot];
  SPL_ASSERT(message.hers_open == 0 && message.dmas.open == 0, message.hers_open, " handlers, ", message.dmas.open);
  SPL_ASSERT(message.bytes_in == message.length, message.bytes_in, " of ", message.length);
  SPL_ASSERT(message.parked_first == no_slot && message.early.empty(), "message ", message.id, " has packets");
  uint64_t manipulated = 0;
  ListKind list = ListKind::priority;
  if (message.entry != no_slot) {
    const ListedEntry& listed = portals.entry(message.entry);
    list = listed.list;  // read before the entry may go
    if (message.failure != Fail::ok) contexts.tally(message.context, Telemetry::failed_messages);
    contexts.tally(message.context, Telemetry::dropped_bytes, message.dropped_bytes);
    SPL_ASSERT(message.dropped_bytes <= message.requested, message.dropped_bytes, " of ", message.requested);
    SPL_ASSERT(message.missing <= message.requested, message.missing, " of ", message.requested);
    const uint64_t arrived = std::min(message.landing_bytes, message.requested - message.missing);
    manipulated = arrived - std::min(arrived, message.dropped_bytes);  // dropped bytes may lie behind the entry's end
    if (message.nothing_landed) manipulated = 0;
    if (message.attached.header != no_slot) {
      portals.landed(message.attached.header, manipulated, message.dropped_bytes, message.failure);
    }
    if (!message.pending) post_put(message, manipulated, out);
    if (contexts.find(message.context) != nullptr) {
      SPL_ASSERT(handler_messages > 0, "message ", message.id);
      contexts.leave_message(message.context);
      --handler_messages;
    }
    const bool comes_back = message.attached.unlinked && message.pending && listed.entry.options.use_once;
    portals.detach(message.entry, message.attached, comes_back, out);
  }
  portals.leave(message.portal, out);
  send_ack(message, list, manipulated, out);
  const bool answered = message.reply_started && message.source == rank;
  const uint64_t request = message.fields.request.reply_to;
  message_slots.remove(message.source, message.id);
  messages.give_back(slot);
  if (answered) initiator.request_served(request, out);
}

void Nic::Impl::send_ack(const Message& message, ListKind list, uint64_t manipulated, Actions& out) const {
  if (message.fields.ack_request == AckRequest::none) return;
  SPL_ASSERT(manipulated <= message.requested, manipulated, " of ", message.requested);
  MessageFields& ack = initiator.acknowledge(message.source, message.id, out);
  if (message.ack_disabled) return;
  ack.ack_request = message.fields.ack_request;
  ack.portal_index = message.fields.portal_index;
  ack.remote_offset = message.offset;
  ack.manipulated_bytes = manipulated;
  ack.fail = static_cast<uint8_t>(message.failure);
  ack.list = list;
}

}  // namespace spinloom::nic
