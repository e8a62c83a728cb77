// Packets that arrive: matching, and what becomes of each payload.
#include <algorithm>
#include <utility>

#include "nic/nic_impl.hpp"

namespace spinloom::nic {

bool Nic::Impl::has_room(const Packet& packet, uint32_t slot) const {
  const uint64_t free_bytes = config.packet_buffer_bytes - buffer_used;
  const bool fits = packet.payload.length <= free_bytes;
  if (slot != no_slot && messages[slot].path != Path::waiting) {
    const Message& message = messages[slot];
    const bool buffered = message.path == Path::undecided || (message.path == Path::handlers && !message.stopped);
    return !buffered || fits;
  }
  if (packet.is_header()) return (fits || contexts.size() == 0) && !waits_for_place(packet);
  // Ahead of its header: one packet's room stays free, so that the header itself can always come in.
  return early_packets < config.early_packets && free_bytes >= config.payload_bytes + packet.payload.length;
}

// Handlers are at work on as many messages as they may, and this one would be one more. Under flow control it comes in,
// to be refused. Work: a walk over the lists, when there is no place.
bool Nic::Impl::waits_for_place(const Packet& packet) const {
  if (handler_messages < config.handler_messages) return false;
  const PortalState* portal = portals.find(PortalIndex{packet.fields.portal_index});
  if (portal == nullptr || !portal->enabled || portal->flow_control) return false;
  const bool gets = packet.operation == Operation::get;
  const MatchKey key{packet.source, packet.fields.match_bits, packet.fields.remote_offset,
                     gets ? packet.fields.request.requested_bytes : packet.message_length};
  uint32_t searched = 0;
  uint32_t found = portal->priority.find(entries, key, searched);
  if (found == no_slot) found = portal->overflow.find(entries, key, searched);
  return found != no_slot && entries[found].entry.context.exists();
}

bool Nic::Impl::wants_packets(const Packet& packet) const {
  if (packet.is_header()) return contexts.size() > 0;
  const uint32_t slot = message_slots.find(packet.source, packet.message);
  if (slot == no_slot) return false;
  const Path path = messages[slot].path;
  return path == Path::undecided || path == Path::handlers;
}

bool Nic::Impl::well_formed(const Packet& packet) const {
  if (packet.offset > packet.message_length) return false;
  if (packet.payload.length > packet.message_length - packet.offset) return false;
  if (packet.payload.length > config.transfer_bytes) return false;
  const uint64_t behind = packet.message_length - packet.offset - packet.payload.length;
  if (packet.missing > 0) return packet.payload.length == 0 && !packet.is_header() && packet.missing == behind;
  if (packet.operation == Operation::atomic || packet.operation == Operation::fetch_atomic) {
    const Request& request = packet.fields.request;
    const bool fetching = packet.operation == Operation::fetch_atomic;
    if (!packet.is_header() || !packet.is_last()) return false;
    return check(request.atomic, request.datatype, packet.message_length, fetching, config.payload_bytes).ok();
  }
  return packet.payload.length > 0 || packet.message_length == 0;
}

void Nic::Impl::receive(const Packet& packet, Actions& out) {
  if (packet.operation == Operation::ack) return receive_ack(packet, out);
  if (packet.operation == Operation::reply) return receive_reply(packet, out);
  Walk walk;
  if (deliver(packet, walk, out)) return;
  uint32_t slot = message_slots.find(packet.source, packet.message);
  if (!well_formed(packet) || !has_room(packet, slot)) {
    ++refused_packets;
    return;
  }
  const bool is_new = slot == no_slot;
  if (is_new) {
    slot = messages.take();
    message_slots.add(packet.source, packet.message, slot);
    Message& made = messages[slot];
    made.source = packet.source;
    made.id = packet.message;
    made.operation = packet.operation;
    made.length = packet.message_length;
  }
  Message& message = messages[slot];
  out.work.matched_by_message = !is_new;
  const bool repeated = packet.is_header() && message.path != Path::waiting;
  if (repeated || packet.message_length != message.length ||
      packet.payload.length + packet.missing > message.length - message.bytes_in) {
    ++refused_packets;
    return;
  }
  if (packet.is_header()) return receive_header(slot, packet, walk, out);
  message.bytes_in += packet.payload.length + packet.missing;
  SPL_ASSERT(message.bytes_in <= message.length, message.bytes_in, " of ", message.length, " B");
  if (packet.missing > 0) {
    message.missing = packet.missing;
    record_failure(message, Fail::aborted);
    return advance(slot, out);
  }
  if (message.path == Path::waiting) {
    ++early_packets;
    buffer_take(packet.payload.length);
    message.early.push_back(packet);
    return;
  }
  accept_payload(slot, packet, false, out);
  advance(slot, out);
}

void Nic::Impl::receive_header(uint32_t slot, const Packet& packet, const Walk& walk, Actions& out) {
  Message& message = messages[slot];
  SPL_ASSERT(message.path == Path::waiting && message.entry == no_slot, "message ", message.id, " has its header");
  message.bytes_in += packet.payload.length;
  SPL_ASSERT(message.bytes_in <= message.length, message.bytes_in, " of ", message.length, " B");
  message.fields = packet.fields;
  message.requested = packet.operation == Operation::get ? packet.fields.request.requested_bytes : message.length;
  out.work.matched_by_message = false;
  match(slot, packet, walk, out);
  SPL_ASSERT(message.path != Path::waiting, "message ", message.id, " goes nowhere");
  accept_payload(slot, packet, false, out);
  const std::vector<Packet> early = std::exchange(message.early, {});
  SPL_ASSERT(early.size() <= early_packets, early.size(), " of ", early_packets);
  early_packets -= static_cast<uint32_t>(early.size());
  for (const Packet& waited : early) accept_payload(slot, waited, true, out);
  advance(slot, out);
}

void Nic::Impl::refuse_message(Message& message, Fail failure) {
  SPL_ASSERT(failure != Fail::ok && message.entry == no_slot, name_of(failure), ", entry ", message.entry);
  message.path = Path::discard;
  message.failure = failure;
  message.dropped_bytes = message.length;
  ++dropped_messages;
  const Refusal counted = failure == Fail::perm_violation ? Refusal::permission
                          : failure == Fail::op_violation ? Refusal::operation
                                                          : Refusal::dropped;
  ++tables[table_of(message.fields.portal_index)].refused[static_cast<size_t>(counted)];
  tally({}, Telemetry::refused_messages);
}

// Under flow control, the events of messages that have come may take what is left of the queue. A message that makes
// its entry leave has two.
bool Nic::Impl::is_full(const PortalState& portal, const Entry& entry) const {
  if (!portal.flow_control) return false;
  const QueueState& queue = *queues.find(portal.queue);
  const EntryOptions& options = entry.options;
  const bool may_leave = options.use_once || (options.manage_local && entry.min_free > 0);
  const uint32_t needed = may_leave && !options.event_unlink_disable ? 2 : 1;
  return queue.index && queue.index->waiting() + queue.events_due + needed > std::max(queue.events_max, needed);
}

// Something that the message needs is not there: no entry, or no place for its header, its handlers or its events.
void Nic::Impl::run_out(Message& message, PortalIndex index, PortalState& portal, bool told) {
  if (!portal.flow_control) return refuse_message(message, Fail::dropped);
  portal.enabled = false;
  portal.disabled_event_due = told;
  tally({}, Telemetry::portals_disabled);
  message.portal = index;
  ++portal.messages_open;  // its end posts the event, after the messages that were matched before
  refuse_message(message, Fail::pt_disabled);
}

void Nic::Impl::match(uint32_t slot, const Packet& packet, const Walk& walk, Actions& out) {
  Message& message = messages[slot];
  const PortalIndex index{packet.fields.portal_index};
  PortalState* portal = portals.find(index);
  if (portal == nullptr) return refuse_message(message, Fail::dropped);
  if (!portal->enabled) return refuse_message(message, Fail::pt_disabled);

  const MatchKey key{packet.source, packet.fields.match_bits, packet.fields.remote_offset, message.requested};
  uint32_t found = walk.found;
  out.work.entries_searched += walk.searched;
  if (!walk.done) found = portal->priority.find(entries, key, out.work.entries_searched);
  if (found == no_slot) found = portal->overflow.find(entries, key, out.work.entries_searched);
  if (found == no_slot) return run_out(message, index, *portal, true);

  const ListedEntry& listed = entries[found];
  const Entry& entry = listed.entry;
  if (entry.user != any_user && entry.user != packet.fields.user) return refuse_message(message, Fail::perm_violation);
  const bool puts = message.operation != Operation::get;
  const bool gets = message.operation == Operation::get || message.operation == Operation::fetch_atomic;
  if ((puts && !entry.options.op_put) || (gets && !entry.options.op_get)) {
    return refuse_message(message, Fail::op_violation);
  }
  const uint32_t headers_max = std::min(config.unexpected_headers, tables[table_of(index.value)].setup.headers_max);
  if ((keeps_headers(listed) && portal->unexpected.size() >= headers_max) ||
      (entry.context.exists() && handler_messages >= config.handler_messages) || is_full(*portal, entry)) {
    return run_out(message, index, *portal, !entry.options.event_flowctrl_disable);
  }

  attach(slot, found, key);
}

// The message is the entry's: where it goes, what follows for the entry.
void Nic::Impl::attach(uint32_t slot, uint32_t found, const MatchKey& key) {
  Message& message = messages[slot];
  ListedEntry& listed = entries[found];
  const Entry& entry = listed.entry;
  PortalState* const portal = portals.find(listed.portal);
  ContextState* const context = contexts.find(entry.context);
  const bool in_overflow = keeps_headers(listed);
  SPL_ASSERT(message.entry == no_slot && portal != nullptr, "message ", message.id, " has entry ", message.entry);
  message.portal = listed.portal;
  message.entry = found;
  message.context = entry.context;
  tally(entry.context, Telemetry::messages);
  message.ack_disabled = entry.options.ack_disable;
  message.offset = entry.options.manage_local ? listed.local_offset : key.remote_offset;
  uint64_t taken = std::min(message.requested, room_at(entry.length, message.offset));
  if (message.operation == Operation::atomic || message.operation == Operation::fetch_atomic) {
    taken -= taken % bytes_of(message.fields.request.datatype);
  }
  const bool handled = !listed.places_payload && message.operation != Operation::get;  // a get brings no payload
  message.path = handled ? Path::handlers : Path::direct;
  message.landing = handled ? message.length : taken;
  message.room = taken;
  if (context != nullptr) {
    SPL_ASSERT(handler_messages < config.handler_messages, handler_messages, " of ", config.handler_messages);
    ++context->messages;
    ++handler_messages;
    if (context->context.header_entry) message.path = Path::undecided;
    message.completion_wanted = context->context.completion_entry.has_value();
  }
  ++portal->messages_open;
  if (portal->flow_control) ++queues.find(portal->queue)->events_due;
  ++listed.messages_open;

  if (in_overflow) {
    SPL_ASSERT(portal->unexpected.size() < config.unexpected_headers, portal->unexpected.size(), " headers");
    message.unexpected = headers.take();
    UnexpectedHeader& header = headers[message.unexpected];
    header.key = key;
    header.operation = message.operation;
    header.fields = message.fields;
    header.overflow_entry = found;
    header.start = start_of(listed, message.offset);
    header.manipulated_bytes = taken;  // until it has landed
    portal->unexpected.push_back(headers, message.unexpected);
    ++listed.headers_kept;
  }
  message.unlinked_entry = use(found, taken);
  if (message.unlinked_entry && portal->flow_control && !entry.options.event_unlink_disable) {
    listed.unlink_due = true;
    ++queues.find(portal->queue)->events_due;
  }
}

// A message takes its bytes of the entry. Whether that makes the entry leave its list.
bool Nic::Impl::use(uint32_t slot, uint64_t taken) {
  ListedEntry& listed = entries[slot];
  const Entry& entry = listed.entry;
  const EntryOptions& options = entry.options;
  if (!options.manage_local && !options.use_once) return false;
  if (options.manage_local) listed.local_offset += taken;
  SPL_ASSERT(!options.manage_local || taken == 0 || listed.local_offset <= entry.length, listed.local_offset, " of ",
             entry.length);
  const bool exhausted =
      options.manage_local && entry.min_free > 0 && room_at(entry.length, listed.local_offset) < entry.min_free;
  if (!listed.linked || !(options.use_once || exhausted)) return false;
  unlink_entry(slot);
  listed.auto_unlinked = true;
  return true;
}

// `buffered`: the packet came ahead of its header and holds its bytes of the packet buffer already.
void Nic::Impl::accept_payload(uint32_t slot, const Packet& packet, bool buffered, Actions& out) {
  Message& message = messages[slot];
  const uint64_t bytes = packet.payload.length;
  if (message.entry != no_slot) {
    tally(message.context, Telemetry::packets);
    tally(message.context, Telemetry::bytes, bytes);
  }
  if (message.path == Path::direct && bytes > 0) {
    const bool scattered = message.operation == Operation::put && packet.offset < message.landing &&
                           !entries[message.entry].entry.iovec.empty();
    if (scattered) return scatter(slot, packet, buffered, out);
    return land(slot, packet.payload, packet.offset, buffered ? bytes : 0, out);
  }
  const bool handled = message.path == Path::undecided || (message.path == Path::handlers && !message.stopped);
  if (handled && bytes > 0) {
    const uint32_t index = executions.take();
    Execution& execution = executions[index];
    execution.message = slot;
    execution.packet_offset = packet.offset;
    execution.buffer_bytes = bytes;
    Her& her = execution.her;
    her.id = HerId{index};
    her.kind = HandlerKind::payload;
    her.context = message.context;
    her.offset = packet.offset;
    her.entry_offset = message.offset;
    her.payload = packet.payload;
    her.message_length = message.length;
    const ContextState& context = *contexts.find(message.context);
    if (const auto& policy = context.context.blocked_round_robin) {
      her.vhpu.value =
          static_cast<uint32_t>(packet.offset / config.payload_bytes / policy->packets_in_row % policy->vhpus);
    }
    if (!buffered) buffer_take(bytes);
    ++message.hers_open;
    ++hers_waiting;
    out.add<BufferPacket>(her.id, bytes);
    return;
  }
  // Stopped, or dropped by the header handler, or nothing to drop.
  if (message.path == Path::handlers || message.path == Path::dropped) message.dropped_bytes += bytes;
  if (buffered) buffer_release(bytes);
}

// Bytes straight to the entry's memory, as far as it takes them. buffer_bytes: what they hold of the packet buffer.
void Nic::Impl::land(uint32_t slot, const PayloadRef& payload, uint64_t offset, uint64_t buffer_bytes, Actions& out) {
  const Message& message = messages[slot];
  SPL_ASSERT(message.entry != no_slot && message.landing <= message.requested, "message ", message.id);
  if (message.operation != Operation::put) return apply_atomic(slot, payload, buffer_bytes, out);
  if (offset >= message.landing) return buffer_release(buffer_bytes);
  const uint32_t dma = issue_dma(slot, no_slot);
  dmas[dma].buffer_bytes = buffer_bytes;
  DmaWrite& write = out.add<DmaWrite>();
  write.dma = DmaId{dma};
  write.host = entries[message.entry].entry.start + message.offset + offset;
  write.source.space = payload.space;
  write.source.bytes = payload.bytes;
  write.source.length = std::min(payload.length, message.landing - offset);
}

}  // namespace spinloom::nic
