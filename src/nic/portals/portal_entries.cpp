// Matching list entries: append, link, unlink, and the events of an entry's life.
#include <algorithm>
#include <utility>

#include "nic/portals/portal_table.hpp"

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

MatchList& PortalTable::list_of_entry(const ListedEntry& listed) {
  Portal& portal = *portals_.find(listed.portal);
  return listed.list == ListKind::priority ? portal.priority : portal.overflow;
}

Result<uint32_t> PortalTable::slot_of(EntryId id) const {
  SPL_ASSIGN(const uint32_t* slot, entry_slots_.get(id));
  return *slot;
}

Status PortalTable::append(const Append& request, Actions& out) {
  const EventQueues::HostRequestScope host_request(queues_);
  const Entry& entry = request.entry;
  SPL_ASSIGN(const Portal* portal, portals_.get(request.portal));
  Part& part = tables_[table_of(request.portal.value)];
  const MatchList& linked = request.list == ListKind::priority ? portal->priority : portal->overflow;
  if (part.entries >= part.setup.entries_max || linked.size() >= part.setup.list_max) {
    return fail(Code::exhausted, "entry ", request.id, ": its interface has ", part.entries, " entries of at most ",
                part.setup.entries_max, ", its list ", linked.size(), " of at most ", part.setup.list_max);
  }
  const bool all_there_is = entry.length == UINT64_MAX;
  if (entry.start == nullptr && entry.length > 0 && !all_there_is && entry.iovec.empty()) {
    return fail(Code::invalid, "entry ", request.id, ": start is null and length is ", entry.length);
  }
  const Context* context = nullptr;
  if (entry.context.exists()) {
    SPL_ASSIGN(context, contexts_.get(entry.context));
  }
  if (entry.counter.exists()) SPL_TRY(triggers_.check(entry.counter));
  SPL_ASSIGN(uint32_t* named_slot, entry_slots_.create(request.id));
  const uint32_t slot = *named_slot = entries_.take();
  ++part.entries;
  if (request.state) *request.state = AppendState::done;
  ListedEntry& listed = entries_[slot];
  listed.entry = entry;
  listed.id = request.id;
  listed.portal = request.portal;
  listed.list = request.list;
  listed.places_payload = context == nullptr || !context->payload_entry.has_value();
  listed.sequence = next_sequence_++;
  contexts_.use_by_entry(entry.context);
  listed.awaits_context = context != nullptr && !context->active;
  if (listed.awaits_context) return {};
  link(slot, out);
  release(slot, out);
  return {};
}

// Links an entry. A priority entry first takes the headers that came before it. An entry that these headers use up (a
// use-once entry, or one with count_unexpected) is never linked. The caller releases the entry.
void PortalTable::link(uint32_t slot, Actions& out) {
  ListedEntry& listed = entries_[slot];
  SPL_ASSERT(!listed.linked && !listed.awaits_context && !listed.auto_unlinked, "entry ", listed.id);
  if (listed.list == ListKind::priority) {
    listed.claiming = true;  // keeps the entry alive while it takes headers
    ++listed.messages_open;
    claim_headers(slot, out);
    --listed.messages_open;
    listed.claiming = false;
    if (listed.auto_unlinked) return;
  }
  list_of_entry(listed).link(entries_, slot);
  if (listed.list == ListKind::priority) note_change(*portals_.find(listed.portal));
  if (listed.entry.options.ct_peer_lost && has_lost(listed.entry.match_rank)) {
    triggers_.count(listed.entry.counter, {0, 1}, out);
  }
  listed.link_event_due = !listed.entry.options.event_link_disable;
  if (listed.claims_open == 0) post_link(listed, out);
}

void PortalTable::post_link(ListedEntry& listed, Actions& out) {
  if (!std::exchange(listed.link_event_due, false)) return;
  queues_.post(portals_.find(listed.portal)->queue, entry_event(listed, EventKind::link), out);
}

void PortalTable::lose(Rank peer, Actions& out) {
  if (has_lost(peer)) return;
  lost_.push_back(peer);
  entries_.for_each([&](uint32_t, const ListedEntry& listed) {
    if (!listed.linked || !listed.entry.options.ct_peer_lost || listed.entry.match_rank != peer) return;
    triggers_.count(listed.entry.counter, {0, 1}, out);
  });
}

bool PortalTable::has_lost(Rank peer) const { return std::ranges::find(lost_, peer) != lost_.end(); }

void PortalTable::readmit(Rank peer, Actions& out) {
  std::erase(lost_, peer);
  entries_.for_each([&](uint32_t, const ListedEntry& listed) {
    if (!listed.linked || !listed.entry.options.ct_peer_back || listed.entry.match_rank != peer) return;
    triggers_.count(listed.entry.counter, {1, 0}, out);
  });
}

void PortalTable::activate(ContextId context, Actions& out) {
  const EventQueues::HostRequestScope host_request(queues_);
  std::vector<uint32_t> waiting;
  entries_.for_each([&](uint32_t slot, const ListedEntry& listed) {
    if (listed.awaits_context && listed.entry.context == context) waiting.push_back(slot);
  });
  std::sort(waiting.begin(), waiting.end(),
            [this](uint32_t a, uint32_t b) { return entries_[a].sequence < entries_[b].sequence; });
  for (const uint32_t slot : waiting) {
    entries_[slot].awaits_context = false;
    link(slot, out);
    release(slot, out);
  }
}

// Takes `taken` bytes of the entry for a message. Returns whether the entry leaves its list.
bool PortalTable::use(uint32_t slot, uint64_t taken) {
  ListedEntry& listed = entries_[slot];
  const Entry& entry = listed.entry;
  const EntryOptions& options = entry.options;
  if (!options.manage_local && !options.use_once) return false;
  if (options.manage_local) listed.local_offset += taken;
  SPL_ASSERT(!options.manage_local || taken == 0 || listed.local_offset <= entry.length, listed.local_offset, " of ",
             entry.length);
  const bool exhausted =
      options.manage_local && entry.min_free > 0 && room_at(entry.length, listed.local_offset) < entry.min_free;
  if (!listed.linked || !(options.use_once || exhausted)) return false;
  list_of_entry(listed).unlink(entries_, slot);
  listed.auto_unlinked = true;
  return true;
}

// Posts the event of an entry that has left its list by itself, once, after the events of all its messages.
void PortalTable::post_unlinked(uint32_t slot, Actions& out) {
  ListedEntry& listed = entries_[slot];
  const uint32_t open = listed.messages_open - (listed.claiming ? 1 : 0);
  if (!listed.auto_unlinked || listed.is_search || listed.unlink_reported || open > 0) return;
  SPL_ASSERT(!listed.linked, "entry ", listed.id);
  listed.unlink_reported = true;
  unreserve_unlink_event(listed);
  if (listed.entry.options.event_unlink_disable) return;
  queues_.post(portals_.find(listed.portal)->queue, entry_event(listed, EventKind::auto_unlink), out);
}

// Gives back the room that flow control kept for the entry's auto_unlink event.
void PortalTable::unreserve_unlink_event(ListedEntry& listed) {
  if (std::exchange(listed.unlink_event_reserved, false)) queues_.unreserve(portals_.find(listed.portal)->queue);
}

// Forgets an entry that is in no list and that nothing refers to.
void PortalTable::release(uint32_t slot, Actions& out) {
  ListedEntry& listed = entries_[slot];
  if (listed.linked || listed.awaits_context || listed.messages_open > 0 || listed.headers_kept > 0) return;
  if (listed.list == ListKind::overflow && listed.unlink_reported && !listed.entry.options.event_unlink_disable) {
    const EventQueues::HostRequestScope host_request(queues_);  // no message kept room for this event
    queues_.post(portals_.find(listed.portal)->queue, entry_event(listed, EventKind::auto_free), out);
  }
  forget(slot);
}

void PortalTable::forget(uint32_t slot) {
  const ListedEntry& listed = entries_[slot];
  SPL_ASSERT(!listed.linked && listed.messages_open == 0 && listed.headers_kept == 0, "entry ", listed.id, ": ",
             listed.messages_open, " messages, ", listed.headers_kept, " headers");
  if (listed.is_search) return entries_.give_back(slot);
  contexts_.leave_entry(listed.entry.context);
  Part& part = tables_[table_of(listed.portal.value)];
  SPL_ASSERT(part.entries > 0, "portal ", listed.portal);
  --part.entries;
  entry_slots_.remove(listed.id);
  entries_.give_back(slot);
}

Result<UnlinkResult> PortalTable::unlink(EntryId id) {
  SPL_ASSIGN(const uint32_t* slot, entry_slots_.get(id));
  const ListedEntry& listed = entries_[*slot];
  if (listed.messages_open > 0) return UnlinkResult::in_use;
  if (listed.auto_unlinked) return fail(Code::invalid, "entry ", id, " has already left its list by itself");
  if (listed.headers_kept > 0) return UnlinkResult::in_use;
  Portal& portal = *portals_.find(listed.portal);
  if (listed.is_published && !close(portal)) return UnlinkResult::in_use;
  if (!listed.awaits_context) list_of_entry(listed).unlink(entries_, *slot);
  if (listed.list == ListKind::priority) note_change(portal);
  forget(*slot);
  return UnlinkResult::done;
}

}  // namespace spinloom::nic
