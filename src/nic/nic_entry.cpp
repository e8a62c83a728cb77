// Entries: append, unlink, the headers that wait in overflow entries, and the events of an entry's life.
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

}  // namespace

Result<uint64_t> Nic::Impl::append(const Append& command, Actions& out) {
  const Entry& entry = command.entry;
  SPL_ASSIGN([[maybe_unused]] PortalState * portal, portals.get(command.portal));
  if (entry.start == nullptr && entry.length > 0 && entry.iovec.empty()) {
    return fail(Code::invalid, "entry ", command.id, ": start is null and length is ", entry.length);
  }
  ContextState* context = nullptr;
  if (entry.context.exists()) {
    SPL_ASSIGN(context, contexts.get(entry.context));
  }
  if (!entry.iovec.empty() && (entry.options.manage_local || (context != nullptr && (context->context.payload_entry ||
                                                                                     context->context.header_entry)))) {
    return fail(Code::unsupported, "entry ", command.id, ": a scatter list goes together with neither ",
                "manage_local nor header or payload handlers");
  }
  if (entry.counter.exists()) {
    SPL_ASSIGN([[maybe_unused]] CounterState * counter, counters.get(entry.counter));
  }
  SPL_ASSIGN(uint32_t* slot, entry_slots.create(command.id));
  *slot = entries.take();
  ListedEntry& listed = entries[*slot];
  listed.entry = entry;
  listed.id = command.id;
  listed.portal = command.portal;
  listed.list = command.list;
  listed.places_payload = context == nullptr || !context->context.payload_entry.has_value();
  listed.sequence = next_entry_sequence++;
  if (context != nullptr) ++context->entries;
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
  if (listed.list == ListKind::priority) {
    ++listed.messages_open;  // the entry must outlive the headers it takes
    claim_headers(slot, out);
    --listed.messages_open;
    if (listed.auto_unlinked) return;
  }
  (listed.list == ListKind::priority ? portal.priority : portal.overflow).link(entries, slot);
  if (!listed.entry.options.event_link_disable) post_event(portal.queue, entry_event(listed, EventKind::link), out);
}

void Nic::Impl::claim_headers(uint32_t slot, Actions& out) {
  ListedEntry& listed = entries[slot];
  const PortalState& portal = *portals.find(listed.portal);
  uint32_t index = portal.unexpected.first();
  while (index != no_slot && !listed.auto_unlinked) {
    UnexpectedHeader& header = headers[index];
    const uint32_t next = header.next;
    if (header.claimer == no_slot && matches(listed, header.key)) {
      header.claimer = slot;
      ++listed.messages_open;
      listed.auto_unlinked = listed.entry.options.use_once;
      if (header.landed) post_overflow(index, out);
    }
    index = next;
  }
}

// A claimed header whose data is there leaves the list; so does a use-once claimer, after its event.
void Nic::Impl::post_overflow(uint32_t index, Actions& out) {
  const UnexpectedHeader& header = headers[index];
  const uint32_t overflow_entry = header.overflow_entry;
  const uint32_t claiming_entry = header.claimer;
  ListedEntry& holder = entries[overflow_entry];
  ListedEntry& claimer = entries[claiming_entry];
  PortalState& portal = *portals.find(holder.portal);
  Event event;
  event.kind = EventKind::put_overflow;
  event.fail = header.failure;
  event.initiator = header.key.source;
  event.portal = holder.portal;
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
  const EntryOptions& options = claimer.entry.options;
  if (!options.event_over_disable) post_event(portal.queue, event, out);
  if (options.ct_overflow) {
    const bool failed = event.fail != Fail::ok;
    const uint64_t counted = options.ct_bytes ? event.manipulated_bytes : 1;
    count(claimer.entry.counter, failed ? CounterValue{0, 1} : CounterValue{counted, 0}, out);
  }
  portal.unexpected.remove(headers, index);
  headers.give_back(index);

  SPL_ASSERT(claimer.messages_open > 0, "entry ", claimer.id);
  --claimer.messages_open;
  if (claimer.auto_unlinked && !claimer.unlink_told) post_unlinked(claiming_entry, out);
  release_entry(claiming_entry, out);
  SPL_ASSERT(holder.headers_kept > 0, "entry ", holder.id);
  --holder.headers_kept;
  release_entry(overflow_entry, out);
}

void Nic::Impl::unlink_entry(uint32_t slot) {
  const ListedEntry& listed = entries[slot];
  PortalState& portal = *portals.find(listed.portal);
  (listed.list == ListKind::priority ? portal.priority : portal.overflow).unlink(entries, slot);
}

void Nic::Impl::post_unlinked(uint32_t slot, Actions& out) {
  ListedEntry& listed = entries[slot];
  listed.unlink_told = true;
  if (listed.entry.options.event_unlink_disable) return;
  post_event(portals.find(listed.portal)->queue, entry_event(listed, EventKind::auto_unlink), out);
}

// Forgets an entry that is in no list once nothing refers to it.
void Nic::Impl::release_entry(uint32_t slot, Actions& out) {
  ListedEntry& listed = entries[slot];
  if (listed.linked || listed.messages_open > 0 || listed.headers_kept > 0) return;
  if (listed.list == ListKind::overflow && listed.unlink_told && !listed.entry.options.event_unlink_disable) {
    post_event(portals.find(listed.portal)->queue, entry_event(listed, EventKind::auto_free), out);
  }
  if (ContextState* context = contexts.find(listed.entry.context)) --context->entries;
  entry_slots.remove(listed.id);
  entries.give_back(slot);
}

Result<uint64_t> Nic::Impl::unlink(const Unlink& command) {
  SPL_ASSIGN(const uint32_t* slot, entry_slots.get(command.id));
  ListedEntry& listed = entries[*slot];
  if (listed.auto_unlinked) return fail(Code::invalid, "entry ", command.id, " has already left its list by itself");
  if (listed.messages_open > 0 || listed.headers_kept > 0) return static_cast<uint64_t>(UnlinkResult::in_use);
  unlink_entry(*slot);
  if (ContextState* context = contexts.find(listed.entry.context)) --context->entries;
  const uint32_t entry_slot = *slot;
  entry_slots.remove(command.id);
  entries.give_back(entry_slot);
  return static_cast<uint64_t>(UnlinkResult::done);
}

}  // namespace spinloom::nic
