// Unexpected headers, which belong to messages in overflow entries, until an entry claims them or a search removes
// them.
#include "nic/portals/entry_memory.hpp"
#include "nic/portals/portal_table.hpp"

namespace spinloom::nic {
namespace {

EventKind overflow_kind_of(Operation operation) {
  switch (operation) {
    case Operation::get: return EventKind::get_overflow;
    case Operation::atomic: return EventKind::atomic_overflow;
    case Operation::fetch_atomic: return EventKind::fetch_atomic_overflow;
    default: return EventKind::put_overflow;
  }
}

}  // namespace

uint32_t PortalTable::keep_header(uint32_t slot, const MatchKey& key, Operation operation, const MessageFields& fields,
                                  uint64_t offset, uint64_t taken) {
  ListedEntry& listed = entries_[slot];
  LinkedList<UnexpectedHeader>& unexpected = portals_.find(listed.portal)->unexpected;
  SPL_ASSERT(unexpected.size() < headers_max_, unexpected.size(), " headers");
  const uint32_t index = headers_.take();
  UnexpectedHeader& header = headers_[index];
  header.key = key;
  header.operation = operation;
  header.fields = fields;
  header.overflow_entry = slot;
  header.start = address_at(listed, offset);
  header.manipulated_bytes = taken;  // preliminary, until the data has landed
  unexpected.push_back(headers_, index);
  ++listed.headers_kept;
  return index;
}

void PortalTable::landed(uint32_t index, uint64_t manipulated, uint64_t dropped, Fail failure) {
  UnexpectedHeader& header = headers_[index];
  SPL_ASSERT(!header.landed, "header ", index);
  header.landed = true;
  header.manipulated_bytes = manipulated;
  header.dropped_bytes = dropped;
  header.failure = failure;
}

uint64_t PortalTable::claim_headers(uint32_t slot, Actions& out) {
  ListedEntry& listed = entries_[slot];
  const Portal& portal = *portals_.find(listed.portal);
  SPL_ASSERT(listed.claiming && listed.list == ListKind::priority, "entry ", listed.id);
  uint64_t headers_found = 0;
  uint32_t index = portal.unexpected.first();
  while (index != no_slot && !listed.auto_unlinked) {
    UnexpectedHeader& header = headers_[index];
    const uint32_t next = header.next;
    if (header.claimer == no_slot && matches(listed, header.key)) {
      ++headers_found;
      header.claimer = slot;
      ++listed.messages_open;
      ++listed.claims_open;
      const EntryOptions& options = listed.entry.options;
      listed.auto_unlinked = options.use_once;
      if (options.count_unexpected && options.manage_local && !options.use_once) {
        listed.local_offset += header.key.length;
        const uint64_t free_bytes = room_at(listed.entry.length, listed.local_offset);
        listed.auto_unlinked = listed.entry.min_free > 0 && free_bytes < listed.entry.min_free;
      }
      if (header.landed && listed.claims_open == 1) post_overflow(index, out);
    }
    index = next;
  }
  return headers_found;
}

// True if no header before this one waits for the same claimer.
bool PortalTable::is_first_claim(uint32_t index) const {
  const uint32_t claimer = headers_[index].claimer;
  for (index = headers_[index].previous; index != no_slot; index = headers_[index].previous) {
    if (headers_[index].claimer == claimer) return false;
  }
  return true;
}

// Reports the claims of an entry in their order, up to one whose data is still to come.
void PortalTable::post_claims(uint32_t claiming_entry, Actions& out) {
  uint32_t open = entries_[claiming_entry].claims_open;
  uint32_t index = portals_.find(entries_[claiming_entry].portal)->unexpected.first();
  while (open > 0) {
    const uint32_t next = headers_[index].next;
    if (headers_[index].claimer == claiming_entry) {
      if (!headers_[index].landed) return;
      post_overflow(index, out);
      --open;  // the last one may end the entry
    }
    index = next;
  }
}

// Removes a claimed header whose data is there, after its event. The entry that held it goes first, then a use-once
// claimer.
void PortalTable::post_overflow(uint32_t index, Actions& out) {
  const EventQueues::HostRequestScope host_request(queues_);
  const uint32_t claimer = headers_[index].claimer;
  report_overflow(index, entries_[claimer], out);
  release(forget_header(index), out);
  end_claim(claimer, out);
}

// Ends the claim of a header that is gone.
void PortalTable::end_claim(uint32_t claiming_entry, Actions& out) {
  ListedEntry& claimer = entries_[claiming_entry];
  SPL_ASSERT(claimer.messages_open > 0 && claimer.claims_open > 0, "entry ", claimer.id);
  --claimer.messages_open;
  --claimer.claims_open;
  if (claimer.claims_open == 0 && !claimer.claiming) end_claims(claimer, out);
  post_unlinked(claiming_entry, out);
  release(claiming_entry, out);
}

void PortalTable::report_overflow(uint32_t index, const ListedEntry& claimer, Actions& out) {
  const EntryOptions& options = claimer.entry.options;
  const UnexpectedHeader& header = headers_[index];
  SPL_ASSERT(header.landed, "entry ", claimer.id, " takes a message that is still coming");
  const Event event = event_of(header, claimer, overflow_kind_of(header.operation));
  if (!options.event_over_disable) queues_.post(portals_.find(event.portal)->queue, event, out);
  count_overflow(claimer.entry, event, out);
}

void PortalTable::count_overflow(const Entry& entry, const Event& event, Actions& out) {
  if (!entry.options.ct_overflow) return;
  const uint64_t counted = entry.options.ct_bytes ? event.manipulated_bytes : 1;
  triggers_.count(entry.counter, event.fail != Fail::ok ? CounterValue{0, 1} : CounterValue{counted, 0}, out);
}

Event PortalTable::event_of(const UnexpectedHeader& header, const ListedEntry& claimer, EventKind kind) const {
  Event event;
  event.kind = kind;
  event.fail = header.failure;
  event.initiator = header.key.source;
  event.user = header.fields.user;
  event.portal = entries_[header.overflow_entry].portal;
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

// Returns the entry that held the message; the caller releases it.
uint32_t PortalTable::forget_header(uint32_t index) {
  const uint32_t overflow_entry = headers_[index].overflow_entry;
  ListedEntry& holder = entries_[overflow_entry];
  portals_.find(holder.portal)->unexpected.remove(headers_, index);
  headers_.give_back(index);
  SPL_ASSERT(holder.headers_kept > 0, "entry ", holder.id);
  --holder.headers_kept;
  return overflow_entry;
}

Result<uint64_t> PortalTable::search(const Search& request, Actions& out) {
  const EventQueues::HostRequestScope host_request(queues_);
  SPL_ASSIGN(const Portal* portal, portals_.get(request.portal));
  if (request.entry.counter.exists()) SPL_TRY(triggers_.check(request.entry.counter));
  const uint64_t headers_found = request.remove ? remove_headers(request, out) : report_headers(request, out);
  if (headers_found > 0) return headers_found;
  Event none;
  none.kind = EventKind::search;
  none.fail = Fail::no_match;
  none.portal = request.portal;
  none.user_ptr = request.entry.user_ptr;
  if (request.remove || !request.entry.options.event_comm_disable) queues_.post(portal->queue, none, out);
  count_end_of_search(request.entry, out);
  return headers_found;
}

uint64_t PortalTable::report_headers(const Search& request, Actions& out) {
  const Portal& portal = *portals_.find(request.portal);
  ListedEntry searching;
  searching.entry = request.entry;
  const EntryOptions& options = searching.entry.options;
  uint64_t headers_found = 0;
  for (uint32_t index = portal.unexpected.first(); index != no_slot; index = headers_[index].next) {
    const UnexpectedHeader& header = headers_[index];
    if (header.claimer != no_slot || !matches(searching, header.key)) continue;
    ++headers_found;
    const Event event = event_of(header, searching, EventKind::search);
    if (!options.event_comm_disable) queues_.post(portal.queue, event, out);
    count_overflow(searching.entry, event, out);
    if (options.use_once) return headers_found;
  }
  if (headers_found > 0) count_end_of_search(request.entry, out);
  return headers_found;
}

// Claims the headers as an entry does that is appended; nothing is ever linked.
uint64_t PortalTable::remove_headers(const Search& request, Actions& out) {
  const uint32_t slot = entries_.take();
  ListedEntry& searching = entries_[slot];
  searching.entry = request.entry;
  searching.entry.options.count_unexpected = false;
  searching.portal = request.portal;
  searching.is_search = true;
  searching.claiming = true;
  ++searching.messages_open;
  const uint64_t headers_found = claim_headers(slot, out);
  --searching.messages_open;
  searching.claiming = false;
  if (headers_found > 0 && searching.claims_open == 0) end_claims(searching, out);
  release(slot, out);
  return headers_found;
}

// All headers that an entry or a search has claimed are reported.
void PortalTable::end_claims(ListedEntry& claimer, Actions& out) {
  if (!claimer.is_search) return post_link(claimer, out);
  if (!claimer.entry.options.use_once) count_end_of_search(claimer.entry, out);
}

// A search that has found nothing, or all there is, counts a failure at its end.
void PortalTable::count_end_of_search(const Entry& searching, Actions& out) {
  if (searching.options.ct_overflow) triggers_.count(searching.counter, {0, 1}, out);
}

}  // namespace spinloom::nic
