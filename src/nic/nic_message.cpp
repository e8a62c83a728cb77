// The end of a message: completion handler, events, counters, acknowledgement.
#include <algorithm>
#include <utility>

#include "nic/nic_impl.hpp"

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

// Takes a message on when one of the things it waits for has come: bytes, handlers, DMAs.
void Nic::Impl::advance(uint32_t slot, Actions& out) {
  Message& message = messages[slot];
  if (message.outgoing != no_slot) return;  // it ends when its last packet leaves
  SPL_ASSERT(message.bytes_in <= message.length, message.bytes_in, " of ", message.length);
  if (message.hers_open > 0 || message.bytes_in < message.length || message.path == Path::waiting) return;
  if (message.path == Path::undecided) {
    // Without bytes there is no packet to wait for.
    if (!message.header_started) start_header_handler(slot, {});
    return;
  }
  if (message.completion_wanted && !message.completion_started && !message.stopped) {
    SPL_ASSERT(message.context.exists() && message.entry != no_slot, "message ", message.id);
    message.completion_started = true;
    const uint32_t index = executions.take();
    Execution& execution = executions[index];
    execution.message = slot;
    Her& her = execution.her;
    her.id = HerId{index};
    her.kind = HandlerKind::completion;
    her.context = message.context;
    her.message_length = message.length;
    her.dropped_bytes = message.dropped_bytes;
    const PortalState& portal = *portals.find(message.portal);
    her.flow_control = portal.flow_control && !portal.enabled;
    ++message.hers_open;
    ++hers_waiting;
    enqueue(index);  // it has no packet, so there is nothing to buffer first
    return;
  }
  if (message.dmas_open > 0) return;
  const bool replies = message.operation == Operation::get || message.operation == Operation::fetch_atomic;
  if (replies && !message.reply_started) return start_reply(slot, out);
  if (message.reply_open) return;
  complete(slot, out);
}

Event Nic::Impl::event_of(const Message& message, EventKind kind) const {
  Event event;
  event.kind = kind;
  event.fail = message.failure;
  if (message.outgoing != no_slot) {
    event.user_ptr = outgoing[message.outgoing].put.user_ptr;
    return event;
  }
  const ListedEntry& listed = entries[message.entry];
  event.initiator = message.source;
  event.user = message.fields.user;
  event.portal = message.portal;
  event.entry = listed.id;
  event.match_bits = message.fields.match_bits;
  event.requested_bytes = message.requested;
  event.remote_offset = message.fields.remote_offset;
  event.start = start_of(listed, message.offset);
  event.hdr_data = message.fields.hdr_data;
  event.user_ptr = listed.entry.user_ptr;
  event.in_overflow = listed.list == ListKind::overflow;
  event.dropped_bytes = message.dropped_bytes;
  event.atomic = message.fields.request.atomic;
  event.datatype = message.fields.request.datatype;
  return event;
}

void Nic::Impl::post_put(const Message& message, uint64_t manipulated, Actions& out) {
  const Entry& entry = entries[message.entry].entry;
  const bool failed = message.failure != Fail::ok;
  if (!entry.options.event_comm_disable && (failed || !entry.options.event_success_disable)) {
    Event event = event_of(message, kind_of(message.operation));
    event.manipulated_bytes = manipulated;
    post_event(portals.find(message.portal)->queue, event, out);
  }
  if (!entry.options.ct_comm) return;
  CounterValue by;
  (failed ? by.failure : by.success) = failed || !entry.options.ct_bytes ? 1 : manipulated;
  count(entry.counter, by, out);
}

// A message of a portal table entry has ended; `index`: none, it had come to none.
void Nic::Impl::leave(PortalIndex index, Actions& out) {
  PortalState* const portal = portals.find(index);
  if (portal == nullptr) return;
  SPL_ASSERT(portal->messages_open > 0, "portal ", index);
  if (--portal->messages_open > 0) return;
  if (portal->disabled_event_due) post_disabled(index, *portal, out);
  if (portal->disablers.empty()) return;
  for (const uint64_t token : std::exchange(portal->disablers, {})) out.add<Answer>(token, uint64_t{0});
}

void Nic::Impl::complete(uint32_t slot, Actions& out) {
  Message& message = messages[slot];
  SPL_ASSERT(message.dma_first == no_slot, "message ", message.id, " of rank ", message.source);
  SPL_ASSERT(message.hers_open == 0 && message.dmas_open == 0, message.hers_open, " handlers, ", message.dmas_open);
  SPL_ASSERT(message.bytes_in == message.length, message.bytes_in, " of ", message.length);
  SPL_ASSERT(message.parked_first == no_slot && message.early.empty(), "message ", message.id, " has packets");
  uint64_t manipulated = 0;
  ListKind list = ListKind::priority;  // read while the entry is here
  if (message.entry != no_slot) {
    list = entries[message.entry].list;
    if (message.failure != Fail::ok) tally(message.context, Telemetry::failed_messages);
    tally(message.context, Telemetry::dropped_bytes, message.dropped_bytes);
    SPL_ASSERT(message.dropped_bytes <= message.requested, message.dropped_bytes, " of ", message.requested);
    SPL_ASSERT(message.missing <= message.requested, message.missing, " of ", message.requested);
    const uint64_t here = std::min(message.landing, message.requested - message.missing);
    manipulated = here - std::min(here, message.dropped_bytes);  // dropped bytes may lie behind the entry's end
    ListedEntry& listed = entries[message.entry];
    if (message.unexpected != no_slot) {
      UnexpectedHeader& header = headers[message.unexpected];
      header.landed = true;
      header.manipulated_bytes = manipulated;
      header.dropped_bytes = message.dropped_bytes;
      header.failure = message.failure;
    }
    if (!message.pending) post_put(message, manipulated, out);
    if (message.unexpected != no_slot && headers[message.unexpected].claimer != no_slot) {
      post_overflow(message.unexpected, out);
    }
    SPL_ASSERT(listed.messages_open > 0, "entry ", listed.id);
    --listed.messages_open;
    if (ContextState* context = contexts.find(message.context)) {
      SPL_ASSERT(context->messages > 0 && handler_messages > 0, context->messages, ", ", handler_messages);
      --context->messages;
      --handler_messages;
    }
    if (message.unlinked_entry && message.pending && listed.entry.options.use_once) {
      listed.auto_unlinked = false;
      settle_unlink(listed);
      link_entry(message.entry, out);
    } else {
      post_unlinked(message.entry, out);
    }
    release_entry(message.entry, out);
  }
  if (PortalState* portal = portals.find(message.portal); portal != nullptr && message.entry != no_slot) {
    if (portal->flow_control) {
      QueueState& queue = *queues.find(portal->queue);
      SPL_ASSERT(queue.events_due > 0, "queue ", portal->queue);
      --queue.events_due;
    }
  }
  leave(message.portal, out);
  send_ack(message, list, manipulated, out);
  message_slots.remove(message.source, message.id);
  messages.give_back(slot);
}

}  // namespace spinloom::nic
