// Entries: append, unlink, the headers that wait in overflow entries, and the events of an entry's life.
#include <algorithm>
#include <utility>

#include "nic/nic_impl.hpp"

namespace spinloom::nic {
namespace {

Event entry_event(const ListedEntry& listed, EventKind kind) {
  Event event;
  event.kind = kind;
  event.portal = listed.portal;
  event.entry = listed.id;
  event.user_ptr = listed.entry.user_ptr;
  event.in_overflow = listed.list == ListKind::overflow;
  return event;
}

EventKind overflow_kind_of(Operation operation) {
  switch (operation) {
    case Operation::get: return EventKind::get_overflow;
    case Operation::atomic: return EventKind::atomic_overflow;
    case Operation::fetch_atomic: return EventKind::fetch_atomic_overflow;
    default: return EventKind::put_overflow;
  }
}

}  // namespace

Result<uint64_t> Nic::Impl::append(const Append& command, Actions& out) {
  const HostAsked asked(*this);
  const Entry& entry = command.entry;
  SPL_ASSIGN(const PortalState* portal, portals.get(command.portal));
  TableState& table = tables[table_of(command.portal.value)];
  const MatchList& linked = command.list == ListKind::priority ? portal->priority : portal->overflow;
  if (table.entries >= table.setup.entries_max || linked.size() >= table.setup.list_max) {
    return fail(Code::exhausted, "entry ", command.id, ": its interface has ", table.entries, " entries of at most ",
                table.setup.entries_max, ", its list ", linked.size(), " of at most ", table.setup.list_max);
  }
  const bool all_there_is = entry.length == UINT64_MAX;
  if (entry.start == nullptr && entry.length > 0 && !all_there_is && entry.iovec.empty()) {
    return fail(Code::invalid, "entry ", command.id, ": start is null and length is ", entry.length);
  }
  ContextState* context = nullptr;
  if (entry.context.exists()) {
    SPL_ASSIGN(context, contexts.get(entry.context));
  }
  if (entry.counter.exists()) {
    SPL_ASSIGN([[maybe_unused]] CounterState * counter, counters.get(entry.counter));
  }
  SPL_ASSIGN(uint32_t* slot, entry_slots.create(command.id));
  *slot = entries.take();
  ++table.entries;
  if (command.news) *command.news = Appended::done;
  ListedEntry& listed = entries[*slot];
  listed.entry = entry;
  listed.id = command.id;
  listed.portal = command.portal;
  listed.list = command.list;
  listed.places_payload = context == nullptr || !context->context.payload_entry.has_value();
  listed.sequence = next_entry_sequence++;
  if (context != nullptr) ++context->entries;
  listed.waits = context != nullptr && !context->context.active;
  if (listed.waits) return uint64_t{0};
  const uint32_t appended = *slot;
  link_entry(appended, out);
  release_entry(appended, out);
  return uint64_t{0};
}

// Priority entries first take the headers that came before them; a use-once entry that found one is never linked.
// The caller releases the entry.
void Nic::Impl::link_entry(uint32_t slot, Actions& out) {
  ListedEntry& listed = entries[slot];
  PortalState& portal = *portals.find(listed.portal);
  SPL_ASSERT(!listed.linked && !listed.waits && !listed.auto_unlinked, "entry ", listed.id);
  if (listed.list == ListKind::priority) {
    listed.claiming = true;  // the entry must outlive the headers it takes
    ++listed.messages_open;
    claim_headers(slot, out);
    --listed.messages_open;
    listed.claiming = false;
    if (listed.auto_unlinked) return;
  }
  (listed.list == ListKind::priority ? portal.priority : portal.overflow).link(entries, slot);
  if (!listed.entry.options.event_link_disable) post_event(portal.queue, entry_event(listed, EventKind::link), out);
}

void Nic::Impl::claim_headers(uint32_t slot, Actions& out) {
  ListedEntry& listed = entries[slot];
  const PortalState& portal = *portals.find(listed.portal);
  SPL_ASSERT(listed.claiming && listed.list == ListKind::priority, "entry ", listed.id);
  uint32_t index = portal.unexpected.first();
  while (index != no_slot && !listed.auto_unlinked) {
    UnexpectedHeader& header = headers[index];
    const uint32_t next = header.next;
    if (header.claimer == no_slot && matches(listed, header.key)) {
      header.claimer = slot;
      ++listed.messages_open;
      const EntryOptions& options = listed.entry.options;
      listed.auto_unlinked = options.use_once;
      if (options.count_unexpected && options.manage_local && !options.use_once) {
        listed.local_offset += header.key.length;
        const uint64_t left = room_at(listed.entry.length, listed.local_offset);
        listed.auto_unlinked = listed.entry.min_free > 0 && left < listed.entry.min_free;
      }
      if (header.landed) post_overflow(index, out);
    }
    index = next;
  }
}

// A claimed header whose data is there leaves the list; so does a use-once claimer, after its event.
void Nic::Impl::post_overflow(uint32_t index, Actions& out) {
  const HostAsked asked(*this);
  const uint32_t claiming_entry = headers[index].claimer;
  ListedEntry& claimer = entries[claiming_entry];
  tell_overflow(index, claimer, out);
  const uint32_t overflow_entry = forget_header(index);
  SPL_ASSERT(claimer.messages_open > 0, "entry ", claimer.id);
  --claimer.messages_open;
  post_unlinked(claiming_entry, out);
  release_entry(claiming_entry, out);
  release_entry(overflow_entry, out);
}

void Nic::Impl::tell_overflow(uint32_t index, const ListedEntry& claimer, Actions& out) {
  const EntryOptions& options = claimer.entry.options;
  const UnexpectedHeader& header = headers[index];
  SPL_ASSERT(header.landed, "entry ", claimer.id, " takes a message that is still coming");
  const Event event = event_of(header, claimer, overflow_kind_of(header.operation));
  if (!options.event_over_disable) post_event(portals.find(event.portal)->queue, event, out);
  count_overflow(claimer.entry, event, out);
}

void Nic::Impl::count_overflow(const Entry& entry, const Event& event, Actions& out) {
  if (!entry.options.ct_overflow) return;
  const uint64_t counted = entry.options.ct_bytes ? event.manipulated_bytes : 1;
  count(entry.counter, event.fail != Fail::ok ? CounterValue{0, 1} : CounterValue{counted, 0}, out);
}

Event Nic::Impl::event_of(const UnexpectedHeader& header, const ListedEntry& claimer, EventKind kind) const {
  Event event;
  event.kind = kind;
  event.fail = header.failure;
  event.initiator = header.key.source;
  event.user = header.fields.user;
  event.portal = entries[header.overflow_entry].portal;
  event.entry = claimer.id;
  event.match_bits = header.key.match_bits;
  event.requested_bytes = header.key.length;
  event.manipulated_bytes = header.manipulated_bytes;
  event.remote_offset = header.key.remote_offset;
  event.start = header.start;
  event.hdr_data = header.fields.hdr_data;
  event.user_ptr = claimer.entry.user_ptr;
  event.in_overflow = true;
  event.dropped_bytes = header.dropped_bytes;
  event.atomic = header.fields.request.atomic;
  event.datatype = header.fields.request.datatype;
  return event;
}

// The entry that held the message, for the caller to release.
uint32_t Nic::Impl::forget_header(uint32_t index) {
  const uint32_t overflow_entry = headers[index].overflow_entry;
  ListedEntry& holder = entries[overflow_entry];
  portals.find(holder.portal)->unexpected.remove(headers, index);
  headers.give_back(index);
  SPL_ASSERT(holder.headers_kept > 0, "entry ", holder.id);
  --holder.headers_kept;
  return overflow_entry;
}

// Work: the headers of one portal table entry.
Result<uint64_t> Nic::Impl::search(const Search& command, Actions& out) {
  const HostAsked asked(*this);
  SPL_ASSIGN(PortalState * portal, portals.get(command.portal));
  if (command.entry.counter.exists()) {
    SPL_ASSIGN([[maybe_unused]] const CounterState* counter, counters.get(command.entry.counter));
  }
  ListedEntry like;
  like.entry = command.entry;
  const EntryOptions& options = like.entry.options;
  uint64_t found = 0;
  uint32_t index = portal->unexpected.first();
  while (index != no_slot && !(found > 0 && options.use_once)) {
    const UnexpectedHeader& header = headers[index];
    const uint32_t next = header.next;
    if (header.claimer == no_slot && matches(like, header.key)) {
      if (command.remove && !header.landed) break;  // one behind it must not overtake it
      ++found;
      if (command.remove) {
        tell_overflow(index, like, out);
        release_entry(forget_header(index), out);
      } else {
        const Event event = event_of(header, like, EventKind::search);
        if (!options.event_comm_disable) post_event(portal->queue, event, out);
        count_overflow(like.entry, event, out);
      }
    }
    index = next;
  }
  Event last;
  last.kind = EventKind::search;
  last.fail = Fail::no_match;
  last.portal = command.portal;
  last.user_ptr = command.entry.user_ptr;
  if (found == 0) post_event(portal->queue, last, out);
  if (found == 0 || !options.use_once) count_overflow(like.entry, last, out);  // the end of what it found
  return found;
}

void Nic::Impl::unlink_entry(uint32_t slot) {
  const ListedEntry& listed = entries[slot];
  PortalState& portal = *portals.find(listed.portal);
  (listed.list == ListKind::priority ? portal.priority : portal.overflow).unlink(entries, slot);
}

// An entry that has left its list by itself: told once, after the events of all its messages.
void Nic::Impl::post_unlinked(uint32_t slot, Actions& out) {
  ListedEntry& listed = entries[slot];
  const uint32_t open = listed.messages_open - (listed.claiming ? 1 : 0);
  if (!listed.auto_unlinked || listed.unlink_told || open > 0) return;
  SPL_ASSERT(!listed.linked, "entry ", listed.id);
  listed.unlink_told = true;
  settle_unlink(listed);
  if (listed.entry.options.event_unlink_disable) return;
  post_event(portals.find(listed.portal)->queue, entry_event(listed, EventKind::auto_unlink), out);
}

// The room that flow control kept for its auto_unlink event is needed no more.
void Nic::Impl::settle_unlink(ListedEntry& listed) {
  if (!std::exchange(listed.unlink_due, false)) return;
  QueueState* const queue = queues.find(portals.find(listed.portal)->queue);
  if (queue == nullptr) return;  // freed by the host
  SPL_ASSERT(queue->events_due > 0, "entry ", listed.id);
  --queue->events_due;
}

// Forgets an entry that is in no list once nothing refers to it.
void Nic::Impl::release_entry(uint32_t slot, Actions& out) {
  ListedEntry& listed = entries[slot];
  if (listed.linked || listed.waits || listed.messages_open > 0 || listed.headers_kept > 0) return;
  if (listed.list == ListKind::overflow && listed.unlink_told && !listed.entry.options.event_unlink_disable) {
    const HostAsked asked(*this);  // one for each entry that the host appended; no message kept room for it
    post_event(portals.find(listed.portal)->queue, entry_event(listed, EventKind::auto_free), out);
  }
  forget_entry(slot);
}

void Nic::Impl::forget_entry(uint32_t slot) {
  const ListedEntry& listed = entries[slot];
  SPL_ASSERT(!listed.linked && listed.messages_open == 0 && listed.headers_kept == 0, "entry ", listed.id, ": ",
             listed.messages_open, " messages, ", listed.headers_kept, " headers");
  if (ContextState* context = contexts.find(listed.entry.context)) {
    SPL_ASSERT(context->entries > 0, "context ", listed.entry.context);
    --context->entries;
  }
  TableState& table = tables[table_of(listed.portal.value)];
  SPL_ASSERT(table.entries > 0, "portal ", listed.portal);
  --table.entries;
  entry_slots.remove(listed.id);
  entries.give_back(slot);
}

Result<uint64_t> Nic::Impl::unlink(const Unlink& command) {
  SPL_ASSIGN(const uint32_t* slot, entry_slots.get(command.id));
  ListedEntry& listed = entries[*slot];
  if (listed.auto_unlinked) return fail(Code::invalid, "entry ", command.id, " has already left its list by itself");
  if (listed.messages_open > 0 || listed.headers_kept > 0) return static_cast<uint64_t>(UnlinkResult::in_use);
  if (!listed.waits) unlink_entry(*slot);
  forget_entry(*slot);
  return static_cast<uint64_t>(UnlinkResult::done);
}

// Work: the entries of all contexts, once.
Status Nic::Impl::activate_context(const ContextActivate& body, Actions& out) {
  SPL_ASSIGN(ContextState * context, contexts.get(body.id));
  if (context->context.active) return fail(Code::invalid, "context ", body.id, " is active already");
  const HostAsked asked(*this);
  context->context.active = true;
  std::vector<uint32_t> waiting;
  entries.for_each([&](uint32_t slot, const ListedEntry& listed) {
    if (listed.waits && listed.entry.context == body.id) waiting.push_back(slot);
  });
  std::sort(waiting.begin(), waiting.end(),
            [this](uint32_t a, uint32_t b) { return entries[a].sequence < entries[b].sequence; });
  for (const uint32_t slot : waiting) {
    entries[slot].waits = false;
    link_entry(slot, out);
    release_entry(slot, out);
  }
  return {};
}

// The host's own message: as one that has just come in one packet and matched this entry.
Status Nic::Impl::invoke(const Invoke& command, Actions& out) {
  SPL_ASSIGN(const uint32_t* entry_slot, entry_slots.get(command.entry));
  const ListedEntry& listed = entries[*entry_slot];
  const uint64_t bytes = command.bytes.size();
  if (listed.auto_unlinked) return fail(Code::invalid, "entry ", command.entry, " has already left its list by itself");
  if (listed.list == ListKind::overflow) {
    return fail(Code::invalid, "entry ", command.entry, " is in the overflow list, whose messages wait to be claimed");
  }
  if (!listed.entry.context.exists()) {
    return fail(Code::invalid, "entry ", command.entry, " has no context, so there are no handlers to run");
  }
  if (bytes > config.payload_bytes) {
    return fail(Code::invalid, "handlers are invoked on at most one packet of ", config.payload_bytes, " B, ", bytes,
                " B were given");
  }
  if (bytes > config.packet_buffer_bytes - buffer_used || handler_messages >= config.handler_messages) {
    return fail(Code::exhausted, "entry ", command.entry, " cannot be invoked now: the packet buffer holds ",
                buffer_used, " of ", config.packet_buffer_bytes, " B (memory.packet_buffer_bytes), handlers work on ",
                handler_messages, " of ", config.handler_messages, " messages (scheduler.messages)");
  }
  const uint32_t slot = messages.take();
  Message& message = messages[slot];
  message.source = rank;
  message.id = uint64_t{next_message_sequence++} << 32 | no_slot;  // no put has this slot
  message_slots.add(message.source, message.id, slot);
  message.length = message.requested = message.bytes_in = bytes;
  message.invoked = command.bytes;
  message.fields.portal_index = listed.portal.value;
  message.fields.match_bits = listed.entry.match_bits;
  message.fields.hdr_data = command.hdr_data;
  attach(slot, *entry_slot, MatchKey{rank, message.fields.match_bits, 0, bytes});
  Packet packet;
  packet.source = rank;
  packet.message_length = bytes;
  packet.payload = {PayloadRef::Space::inline_bytes, message.invoked.data(), bytes};
  accept_payload(slot, packet, false, out);
  advance(slot, out);
  return {};
}

}  // namespace spinloom::nic
