// Packets that arrive: matching, and what becomes of each payload.
#include <algorithm>
#include <utility>

#include "nic/portals/entry_memory.hpp"
#include "nic/portals/nic_impl.hpp"

namespace spinloom::nic {

// True if this NIC has begun the message before the host set up the message's part of the table: the message belongs to
// an interface that has been closed, and must not meet what the next one has.
bool Nic::Impl::is_for_older_table(const Packet& packet) const {
  return packet.source == rank &&
         initiator.is_among_first(begun_at_setup[PortalTable::table_of(packet.fields.portal_index)], packet.message);
}

// The portal table entry that takes a header's message, or null.
const PortalTable::Portal* Nic::Impl::portal_of(const Packet& packet) const {
  return is_for_older_table(packet) ? nullptr : portals.find(PortalIndex{packet.fields.portal_index});
}

bool Nic::Impl::has_room(const Packet& packet, uint32_t slot) const {
  const bool fits = packet.payload.length <= buffer.free();
  if (slot != no_slot && messages[slot].path != Path::waiting) {
    const Message& message = messages[slot];
    const bool buffered = message.path == Path::undecided || (message.path == Path::handlers && !message.stopped);
    return !buffered || fits;
  }
  if (packet.is_header()) return (fits || contexts.size() == 0) && !waits_for_place(packet);
  // The packet is ahead of its header. Room for one packet stays free, so that the header itself always fits.
  return early_packets < config.early_packets && buffer.free() >= config.payload_bytes + packet.payload.length;
}

// True if a message must wait because handlers work on as many messages as they may. Under flow control the message
// comes in, to be refused. Work: a walk over the lists, if there is no place.
bool Nic::Impl::waits_for_place(const Packet& packet) const {
  if (handler_messages < config.handler_messages) return false;
  const PortalTable::Portal* const portal = portal_of(packet);
  if (portal == nullptr || !portal->enabled || portal->flow_control) return false;
  const bool gets = packet.operation == Operation::get;
  const MatchKey key{packet.source, packet.fields.match_bits, packet.fields.remote_offset,
                     gets ? packet.fields.request.requested_bytes : packet.message_length};
  uint32_t searched = 0;
  uint32_t entry_slot = portals.find_priority(*portal, key, searched);
  if (entry_slot == no_slot) entry_slot = portals.find_overflow(*portal, key, searched);
  return entry_slot != no_slot && portals.entry(entry_slot).entry.context.exists();
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
  if (packet.is_answer()) {
    out.work.matched_by_message = true;
    const bool taken = packet.operation == Operation::ack ? initiator.take_ack(packet, out)
                                                          : well_formed(packet) && initiator.take_reply(packet, out);
    if (!taken) ++refused_packets;
    return;
  }
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
    Message& opened = messages[slot];
    opened.source = packet.source;
    opened.id = packet.message;
    opened.operation = packet.operation;
    opened.length = packet.message_length;
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
    message.record(Fail::aborted);
    return advance(slot, out);
  }
  if (message.path == Path::waiting) {
    ++early_packets;
    buffer.take(packet.payload.length);
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

void Nic::Impl::discard(Message& message, Fail failure) {
  SPL_ASSERT(failure != Fail::ok && message.entry == no_slot, name_of(failure), ", entry ", message.entry);
  message.path = Path::discard;
  message.failure = failure;
  message.dropped_bytes = message.length;
  ++dropped_messages;
}

void Nic::Impl::refuse(Message& message, Fail failure) {
  discard(message, failure);
  portals.count_refusal(PortalIndex{message.fields.portal_index}, failure);
}

// A message lacks an entry, or a place for its header, its handlers or its events.
void Nic::Impl::disable_portal(Message& message, const PortalTable::Portal& portal, bool post_event) {
  if (!portal.flow_control) return refuse(message, Fail::dropped);
  message.portal = portal.index;
  portals.disable(portal.index, post_event);
  refuse(message, Fail::pt_disabled);
}

void Nic::Impl::match(uint32_t slot, const Packet& packet, const Walk& walk, Actions& out) {
  Message& message = messages[slot];
  if (is_for_older_table(packet)) return discard(message, Fail::dropped);
  const PortalTable::Portal* const portal = portals.find(PortalIndex{packet.fields.portal_index});
  if (portal == nullptr) return refuse(message, Fail::dropped);
  if (!portal->enabled) return refuse(message, Fail::pt_disabled);

  const MatchKey key{packet.source, packet.fields.match_bits, packet.fields.remote_offset, message.requested};
  uint32_t entry_slot = walk.entry;
  out.work.entries_searched += walk.searched;
  if (!walk.done) entry_slot = portals.find_priority(*portal, key, out.work.entries_searched);
  if (entry_slot == no_slot) entry_slot = portals.find_overflow(*portal, key, out.work.entries_searched);
  if (entry_slot == no_slot) return disable_portal(message, *portal, true);

  const ListedEntry& listed = portals.entry(entry_slot);
  const Entry& entry = listed.entry;
  if (entry.user != any_user && entry.user != packet.fields.user) return refuse(message, Fail::perm_violation);
  const bool puts = message.operation != Operation::get;
  const bool gets = message.operation == Operation::get || message.operation == Operation::fetch_atomic;
  if ((puts && !entry.options.op_put) || (gets && !entry.options.op_get)) return refuse(message, Fail::op_violation);
  if ((keeps_headers(listed) && !portals.has_header_room(*portal)) ||
      (entry.context.exists() && handler_messages >= config.handler_messages) ||
      !portals.has_event_room(*portal, entry)) {
    return disable_portal(message, *portal, !entry.options.event_flowctrl_disable);
  }
  attach(slot, entry_slot, key);
}

// Links a message to its entry: decides where the message goes and what the entry does next.
void Nic::Impl::attach(uint32_t slot, uint32_t entry_slot, const MatchKey& key) {
  Message& message = messages[slot];
  const ListedEntry& listed = portals.entry(entry_slot);
  const Entry& entry = listed.entry;
  SPL_ASSERT(message.entry == no_slot, "message ", message.id, " has entry ", message.entry);
  message.portal = listed.portal;
  message.entry = entry_slot;
  message.context = entry.context;
  contexts.tally(entry.context, Telemetry::messages);
  message.ack_disabled = entry.options.ack_disable;
  message.offset = entry.options.manage_local ? listed.local_offset : key.remote_offset;
  uint64_t taken = std::min(message.requested, room_at(entry.length, message.offset));
  if (message.operation == Operation::atomic || message.operation == Operation::fetch_atomic) {
    taken -= taken % nic::bytes_of(message.fields.request.datatype);
  }
  const bool handled = !listed.places_payload && message.operation != Operation::get;  // a get brings no payload
  message.path = handled ? Path::handlers : Path::direct;
  message.landing_bytes = handled ? message.length : taken;
  message.room_bytes = taken;
  if (const Context* const context = contexts.find(entry.context)) {
    SPL_ASSERT(handler_messages < config.handler_messages, handler_messages, " of ", config.handler_messages);
    contexts.use_by_message(entry.context);
    ++handler_messages;
    if (context->header_entry) message.path = Path::undecided;
    message.completion_wanted = context->completion_entry.has_value();
  }
  if (message.path == Path::direct) fail_if_memory_is_missing(message);
  message.attached =
      portals.attach(entry_slot, key, message.operation, message.fields, message.offset, message.room_bytes);
}

// True if this range of an entry's memory is there, so that a message may touch it.
bool Nic::Impl::is_accessible(const ListedEntry& listed, uint64_t offset, uint64_t length, Access access) const {
  const Entry& entry = listed.entry;
  if (!entry.sparse || memory == nullptr || length == 0) return true;
  if (!entry.iovec.empty()) return memory->reaches(list_of(listed), offset, length, access);
  return memory->reaches(reinterpret_cast<const uint8_t*>(address_at(listed, offset)), length, access);
}

// Fails a message to memory that is not there as a whole, with SEGV and without a byte.
void Nic::Impl::fail_if_memory_is_missing(Message& message) const {
  const Access access = message.operation == Operation::get ? Access::read : Access::write;
  if (is_accessible(portals.entry(message.entry), message.offset, message.room_bytes, access)) return;
  message.record(Fail::segv);
  message.landing_bytes = message.room_bytes = 0;
}

// `buffered`: the packet came ahead of its header, and its bytes already count in the packet buffer.
void Nic::Impl::accept_payload(uint32_t slot, const Packet& packet, bool buffered, Actions& out) {
  Message& message = messages[slot];
  const uint64_t bytes = packet.payload.length;
  if (message.entry != no_slot) {
    contexts.tally(message.context, Telemetry::packets);
    contexts.tally(message.context, Telemetry::bytes, bytes);
  }
  if (message.path == Path::direct && bytes > 0) {
    return land(slot, packet.payload, packet.offset, buffered ? bytes : 0, out);
  }
  const bool handled = message.path == Path::undecided || (message.path == Path::handlers && !message.stopped);
  if (handled && bytes > 0) {
    if (!buffered) buffer.take(bytes);
    Execution& execution = executions.open({OwnerKind::incoming, slot}, HandlerKind::payload, message.context, bytes);
    execution.packet_offset = packet.offset;
    Her& her = execution.her;
    her.offset = packet.offset;
    her.entry_offset = message.offset;
    her.payload = packet.payload;
    her.message_length = message.length;
    her.vhpu = vhpu_of(*contexts.find(message.context), packet.offset, config.payload_bytes);
    ++message.hers_open;
    out.add<BufferPacket>(her.id, bytes);
    return;
  }
  // The work was stopped, or the header handler dropped the message, or no entry took it, or there are no bytes.
  if (message.path == Path::handlers || message.path == Path::dropped) message.dropped_bytes += bytes;
  if (buffered) buffer.release(bytes);
}

// Asks the driver to write bytes into the entry's memory, as far as the entry takes them; atomics go to apply_atomic().
// `buffer_bytes` is their part of the packet buffer.
void Nic::Impl::land(uint32_t slot, const PayloadRef& payload, uint64_t offset, uint64_t buffer_bytes, Actions& out) {
  const Message& message = messages[slot];
  SPL_ASSERT(message.entry != no_slot && message.landing_bytes <= message.requested, "message ", message.id);
  if (message.operation != Operation::put) return apply_atomic(slot, payload, buffer_bytes, out);
  if (offset >= message.landing_bytes) return buffer.release(buffer_bytes);
  const Entry& entry = portals.entry(message.entry).entry;
  if (!entry.iovec.empty()) return scatter(slot, payload, offset, buffer_bytes, out);
  DmaWrite& write = out.add<DmaWrite>();
  write.dma = dmas.issue(messages[slot].dmas, {OwnerKind::incoming, slot}, buffer_bytes);
  write.host = entry.start + message.offset + offset;
  write.source.space = payload.space;
  write.source.bytes = payload.bytes;
  write.source.length = std::min(payload.length, message.landing_bytes - offset);
}

}  // namespace spinloom::nic
