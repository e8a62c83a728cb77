// Entries: appends and unlinks, and the ways in which their ids come back.
#include <algorithm>
#include <utility>

#include "portals/interface/interface.hpp"

namespace spinloom::portals {
namespace {

// The NIC walks the list packet by packet and relies on these checks.
Status check_iovec(const nic::Entry& entry) {
  uint64_t sum = 0;
  for (size_t i = 0; i < entry.iovec.size(); ++i) {
    const nic::IovecElement& element = entry.iovec[i];
    if (element.base == nullptr || element.length == 0 || element.length > entry.length - sum) {
      return fail(Code::invalid, "me_append: element ", i, " of the scatter list is null, empty or goes beyond the ",
                  "entry's length of ", entry.length, " B");
    }
    sum += element.length;
  }
  if (sum == entry.length) return {};
  return fail(Code::invalid, "me_append: the scatter list holds ", sum, " B, the entry's length is ", entry.length);
}

}  // namespace

Interface::IdReturn Interface::id_return_of(nic::PortalIndex portal, const nic::Entry& entry,
                                            nic::ListKind list) const {
  const nic::EntryOptions& options = entry.options;
  const bool unlinks_itself = options.use_once || (options.manage_local && entry.min_free > 0);
  if (!unlinks_itself) return IdReturn::explicit_unlink;
  const bool has_queue = portal_queues_[portal.value].exists();
  if (has_queue && !options.event_unlink_disable) return IdReturn::by_unlink_event;
  const bool has_message_event = has_queue && options.use_once && !options.event_comm_disable &&
                                 !options.event_success_disable && !options.event_over_disable;
  return has_message_event && list == nic::ListKind::priority ? IdReturn::by_message_event : IdReturn::silent;
}

Result<nic::EntryId> Interface::me_append(nic::PortalIndex portal, const nic::Entry& entry, nic::ListKind list,
                                          const std::optional<nic::Trigger>& trigger) {
  SPL_TRY(portals_.check(portal));
  if (!entry.iovec.empty()) SPL_TRY(check_iovec(entry));
  if (entry.counter.exists()) SPL_TRY(counters_.check(entry.counter));
  if (entry.context.exists()) SPL_TRY(contexts_.check(entry.context));
  if (trigger) SPL_TRY(counters_.check(trigger->counter));
  if (!entries_.has_free()) reclaim_failed_appends();
  if (!entries_.has_free()) return append_under_silent_id(nic::Append{{}, portal, list, entry}, trigger);
  SPL_ASSIGN(const nic::EntryId id, entries_.take());
  if (entry_records_.size() <= id.value) entry_records_.resize(id.value + 1);
  // Recorded now, because an event may give the id back before the answer comes.
  entry_records_[id.value] = EntryRecord{list, id_return_of(portal, entry, list), id, portal};
  if (entry_records_[id.value].id_return == IdReturn::silent) silent_entries_.push_back(id);
  if (const auto appended = submit_append({id, portal, list, entry}, trigger); !appended) {
    if (entry_records_[id.value].id_return == IdReturn::silent) silent_entries_.pop_back();
    entries_.give_back(id);
    return appended.error();
  }
  return id;
}

Result<nic::EntryId> Interface::me_post(nic::PortalIndex portal, const nic::Entry& entry) {
  constexpr auto list = nic::ListKind::priority;
  if (bundle_.depth == 0 || !entries_.has_free()) return me_append(portal, entry, list);
  SPL_TRY(portals_.check(portal));
  if (!entry.iovec.empty()) SPL_TRY(check_iovec(entry));
  if (entry.counter.exists()) SPL_TRY(counters_.check(entry.counter));
  if (entry.context.exists()) SPL_TRY(contexts_.check(entry.context));
  SPL_ASSIGN(const nic::EntryId id, entries_.take());
  if (entry_records_.size() <= id.value) entry_records_.resize(id.value + 1);
  entry_records_[id.value] = EntryRecord{list, id_return_of(portal, entry, list), id, portal};
  // If the append fails, its id stays in use. With IdReturn::silent it is tried again when ids run out.
  if (entry_records_[id.value].id_return == IdReturn::silent) silent_entries_.push_back(id);
  bundle(nic::Append{id, portal, list, entry}, {});
  return id;
}

// Asks the NIC for an append. One that waits for a counter may never be performed, so its state (`append_state`) is
// kept.
Result<uint64_t> Interface::submit_append(nic::Append append, const std::optional<nic::Trigger>& trigger) {
  if (!trigger) return submit_and_wait(append);
  if (triggered_appends_.size() >= triggered_appends_max_) {
    reclaim_failed_appends();
    triggered_appends_max_ = std::max(triggered_appends_max_, 2 * triggered_appends_.size());
  }
  append.state = std::make_shared<std::atomic<nic::AppendState>>(nic::AppendState::not_yet);
  SPL_ASSIGN(const uint64_t answer, submit_and_wait(append, trigger));
  entry_records_[append.id.value].append_state = std::move(append.state);
  triggered_appends_.push_back(append.id);
  return answer;
}

// Takes back the ids of appends that were cancelled or failed later, because no event reports them.
void Interface::reclaim_failed_appends() {
  std::erase_if(triggered_appends_, [this](nic::EntryId id) {
    EntryRecord& record = entry_records_[id.value];
    // The record may belong to another entry by now, or be listed twice.
    if (record.id != id || !record.append_state) return true;
    const nic::AppendState state = *record.append_state;
    if (state == nic::AppendState::not_yet) return false;
    record.append_state.reset();
    if (state == nic::AppendState::done) return true;
    if (record.id_return == IdReturn::silent) std::erase(silent_entries_, id);
    entries_.give_back(id);
    return true;
  });
}

// Appends when no id is left. Entries that have left their list without an event need their ids no more; the NIC
// accepts the next id of such an entry.
Result<nic::EntryId> Interface::append_under_silent_id(nic::Append append, const std::optional<nic::Trigger>& trigger) {
  for (size_t tries = silent_entries_.size(); tries > 0; --tries) {
    const nic::EntryId older = silent_entries_.front();
    silent_entries_.pop_front();
    EntryRecord& record = entry_records_[older.value];
    append.id = nic::next_of(older);
    if (record.append_state ||
        !submit_append(append, trigger)) {  // its append waits for a counter, or the entry is still there
      silent_entries_.push_back(older);
      continue;
    }
    entries_.pass_on(older, append.id);
    record.list = append.list;
    record.id = append.id;
    record.portal = append.portal;
    record.id_return = id_return_of(append.portal, append.entry, append.list);
    if (record.id_return == IdReturn::silent) silent_entries_.push_back(append.id);
    return append.id;
  }
  return entries_.take();  // fails with the limit's name
}

Result<Unlinked> Interface::me_unlink(nic::EntryId entry) {
  SPL_TRY(entries_.check(entry));
  SPL_ASSIGN(const uint64_t answer, submit_and_wait(nic::Unlink{entry}));
  if (answer == static_cast<uint64_t>(nic::UnlinkResult::in_use)) return Unlinked::in_use;
  if (entry_records_[entry.value].id_return == IdReturn::silent) std::erase(silent_entries_, entry);
  entries_.give_back(entry);
  return Unlinked::done;
}

// No event will say whether the entry is gone, so its id is tried again when ids run out.
Status Interface::me_unlink(nic::EntryId entry, const nic::Trigger& trigger) {
  SPL_TRY(entries_.check(entry));
  SPL_TRY(send_command(nic::Unlink{entry}, trigger));
  EntryRecord& record = entry_records_[entry.value];
  if (record.id_return != IdReturn::silent) silent_entries_.push_back(entry);
  record.id_return = IdReturn::silent;
  return {};
}

// Forgets the queue of a portal table entry: no events give the ids of its entries back any more.
void Interface::forget_queue_of(nic::PortalIndex portal) {
  portal_queues_[portal.value] = {};
  for (EntryRecord& record : entry_records_) {
    const bool is_reported =
        record.id_return == IdReturn::by_unlink_event || record.id_return == IdReturn::by_message_event;
    if (!is_reported || record.portal != portal || !entries_.in_use(record.id)) continue;
    record.id_return = IdReturn::silent;
    silent_entries_.push_back(record.id);
  }
}

void Interface::reclaim_id(const nic::Event& event) {
  if (!entries_.in_use(event.entry)) return;
  const EntryRecord& record = entry_records_[event.entry.value];
  bool is_gone = false;
  switch (event.kind) {
    case nic::EventKind::auto_unlink:
      is_gone = record.id_return == IdReturn::by_unlink_event && record.list == nic::ListKind::priority;
      break;
    case nic::EventKind::auto_free: is_gone = record.id_return == IdReturn::by_unlink_event; break;
    case nic::EventKind::put:
    case nic::EventKind::get:
    case nic::EventKind::atomic:
    case nic::EventKind::fetch_atomic:
    case nic::EventKind::put_overflow:
    case nic::EventKind::get_overflow:
    case nic::EventKind::atomic_overflow:
    case nic::EventKind::fetch_atomic_overflow: is_gone = record.id_return == IdReturn::by_message_event; break;
    default: break;
  }
  if (is_gone) entries_.give_back(event.entry);
}

}  // namespace spinloom::portals
