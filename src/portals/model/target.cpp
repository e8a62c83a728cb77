// The target's side: the lists of a portal table entry, and what they do with messages.
#include <algorithm>

#include "portals/model/elements.hpp"
#include "portals/model/step.hpp"

namespace spinloom::model {
namespace {

bool is_used_by(const Message& message, uint16_t rank) {
  return message.target == rank && (message.stage == Stage::matched || message.stage == Stage::moved);
}

uint16_t room_at(const Entry& entry, uint16_t offset) {
  return offset > entry.memory.length ? uint16_t{0} : static_cast<uint16_t>(entry.memory.length - offset);
}

bool is_exhausted(const Entry& entry, uint16_t local_offset) {
  return entry.manage_local && entry.min_free > 0 && entry.memory.length - local_offset < entry.min_free;
}

EventKind overflow_kind(OperationKind kind) {
  switch (kind) {
    case OperationKind::get: return EventKind::get_overflow;
    case OperationKind::atomic: return EventKind::atomic_overflow;
    case OperationKind::fetch_atomic: return EventKind::fetch_atomic_overflow;
    default: return EventKind::put_overflow;
  }
}

Event event_of_entry(EventKind kind, OperationName name) {
  Event event;
  event.kind = kind;
  event.user_ptr = name_of(name.rank, name.place);
  return event;
}

}  // namespace

bool Step::matches(const Entry& entry, uint16_t local_offset, OperationName name) const {
  const Operation& sent = operation(name);
  if (!machine_.setup(sent.movement.target).matching) return true;
  if (entry.match_rank != any && entry.match_rank != name.rank) return false;
  const uint16_t offset = entry.manage_local ? local_offset : sent.movement.remote_offset;
  if (entry.no_truncate && offset + requested_by(sent) > entry.memory.length) return false;
  return (sent.movement.match_bits | entry.ignore_bits) == (entry.match_bits | entry.ignore_bits);
}

std::optional<size_t> Step::find_entry(uint16_t rank, OperationName name) const {
  const std::vector<ListedEntry>& entries = process(rank).entries;
  for (const List list : {List::priority, List::overflow}) {
    for (size_t place = 0; place < entries.size(); ++place) {
      const ListedEntry& listed = entries[place];
      if (!listed.is_linked || listed.list != list) continue;
      if (matches(operation({rank, listed.appended_by}).entry, listed.local_offset, name)) return place;
    }
  }
  return std::nullopt;
}

// Messages that have found an entry and whose event or count is still to come.
bool Step::is_under_way(uint16_t rank) const {
  return std::any_of(state_.messages.begin(), state_.messages.end(),
                     [&](const Message& message) {
                       return is_used_by(message, rank) || (message.target == rank && message.stage == Stage::reported);
                     }) ||
         !process(rank).claims.empty();
}

bool Step::has_claims(uint16_t rank, uint16_t appended_by) const {
  const std::vector<Claim>& claims = process(rank).claims;
  return std::any_of(claims.begin(), claims.end(), [&](const Claim& claim) { return claim.taken_by == appended_by; });
}

bool Step::is_in_use(uint16_t rank, uint16_t entry) const {
  const std::vector<Header>& headers = process(rank).headers;
  const std::vector<Claim>& claims = process(rank).claims;
  return std::any_of(state_.messages.begin(), state_.messages.end(),
                     [&](const Message& message) { return is_used_by(message, rank) && message.entry == entry; }) ||
         std::any_of(headers.begin(), headers.end(), [&](const Header& header) { return header.entry == entry; }) ||
         std::any_of(claims.begin(), claims.end(),
                     [&](const Claim& claim) { return claim.header.entry == entry || claim.taken_by == entry; });
}

bool Step::has_come(const Header& header) const {
  return std::none_of(state_.messages.begin(), state_.messages.end(), [&](const Message& message) {
    return message.name == header.name && (message.stage == Stage::matched || message.stage == Stage::moved);
  });
}

// The number of events that messages have made and that the rank has not taken.
uint16_t Step::messages_in_queue(uint16_t rank) const {
  const Queue& queue = process(rank).queues[0];
  const std::vector<Event>& events = machine_.follows(rank) ? machine_.followed_->events[rank][0] : queue.events;
  const auto end = events.begin() + static_cast<ptrdiff_t>(std::min<size_t>(queue.posted, events.size()));
  return static_cast<uint16_t>(std::count_if(events.begin() + queue.taken, end,
                                             [](const Event& event) { return tells_of_message(event.kind); }));
}

// True if the events of one more message may not fit, or not together with those that are still to come. Then flow
// control may refuse it. Events that the rank has asked for take room, too, or find room of their own.
bool Step::may_lack_event_room(uint16_t rank) const {
  const Process& target = process(rank);
  if (machine_.setup(rank).arrivals_max == any) return false;
  constexpr int events_of_message = 2;  // its own, and that of an entry that it unlinks
  int events = target.queues[0].posted - target.queues[0].taken + events_of_message;
  for (const Message& message : state_.messages) events += is_used_by(message, rank) ? events_of_message : 0;
  for (const ListedEntry& listed : target.entries) events += listed.is_linked && listed.is_link_reported ? 0 : 1;
  return events + static_cast<int>(target.claims.size()) > machine_.setup(rank).arrivals_max;
}

bool Step::may_find_queue_full(uint16_t rank) const {
  const Queue& queue = process(rank).queues[0];
  return process(rank).is_enabled && queue.posted - queue.taken >= machine_.setup(rank).arrivals_max;
}

void Step::find_queue_full(uint16_t rank) { disable(rank, true); }

uint16_t Step::ways_to_match(size_t index) const {
  const Message& message = state_.messages[index];
  const uint16_t ways = ways_to_keep_header(message);
  return may_lack_event_room(message.target) ? static_cast<uint16_t>(2 * ways) : ways;
}

// A header that was taken while its data arrives may need its place until then.
uint16_t Step::ways_to_keep_header(const Message& message) const {
  const Process& target = process(message.target);
  const uint16_t headers_max = machine_.setup(message.target).headers_max;
  const bool is_open =
      target.headers.size() < headers_max && target.headers.size() + target.claims.size() >= headers_max;
  return is_open && !machine_.rules_.claims_hold_places ? 2 : 1;
}

void Step::match(size_t index, uint16_t way) {
  Message& message = state_.messages[index];
  Process& target = process(message.target);
  const Setup& setup = machine_.setup(message.target);
  const Operation& sent = operation(message.name);
  const auto drop = [&](bool disables, bool with_event) {
    ++target.dropped;
    if (disables) disable(message.target, with_event);
    refuse(message, disables ? Fail::pt_disabled : Fail::dropped);
    end_if_over(index);
  };
  if (!target.is_enabled) {
    ++target.dropped;
    refuse(message, Fail::pt_disabled);
    return end_if_over(index);
  }
  const auto found = find_entry(message.target, message.name);
  if (!found) return drop(setup.flow_control, true);
  ListedEntry& listed = target.entries[*found];
  const Entry& entry = operation({message.target, listed.appended_by}).entry;
  if (entry.user != any && entry.user != machine_.setup(message.name.rank).user) {
    ++target.permission_violations;
    refuse(message, Fail::perm_violation);
    return end_if_over(index);
  }
  if ((has_source(sent) && !entry.op_put) || (has_reply(sent) && !entry.op_get)) {
    ++target.operation_violations;
    refuse(message, Fail::op_violation);
    return end_if_over(index);
  }
  const bool is_unexpected = listed.list == List::overflow && !entry.unexpected_hdr_disable;
  const uint16_t ways = ways_to_keep_header(message);
  const size_t places = target.headers.size() + (way % ways == 0 ? target.claims.size() : 0);
  const bool lacks_event_room = way >= ways;
  if (lacks_event_room || (is_unexpected && places >= setup.headers_max)) {
    return drop(setup.flow_control, !entry.flowctrl_disable);
  }
  message.entry = listed.appended_by;
  message.list = listed.list;
  message.offset = entry.manage_local ? listed.local_offset : sent.movement.remote_offset;
  message.moved = std::min(requested_by(sent), room_at(entry, message.offset));
  if (sent.kind == OperationKind::fetch_atomic && is_one_element(sent.movement.atomic)) {
    message.moved = std::min(message.moved, element_bytes);
  }
  message.stage = Stage::matched;
  if (is_unexpected) target.headers.push_back({message.name, message.entry, message.offset, message.moved});
  if (entry.manage_local) listed.local_offset = static_cast<uint16_t>(listed.local_offset + message.moved);
  if (entry.use_once || is_exhausted(entry, listed.local_offset)) listed.is_linked = false;
  const bool moves_nothing = machine_.rules_.reports_nothing_at_once && message.moved == 0 && !has_reply(sent);
  if (!has_races(message.name) || moves_nothing) move_all(index);
  if (moves_nothing) report(index);
}

void Step::refuse(Message& message, Fail fail) {
  message.fail = fail;
  message.stage = Stage::ended;
  message.bytes.clear();
}

void Step::disable(uint16_t rank, bool with_event) {
  process(rank).is_enabled = false;
  process(rank).reports_disabled = process(rank).reports_disabled || with_event;
  if (machine_.rules_.owes_nothing && may_report_disabled(rank)) report_disabled(rank);
}

// When the last message that had found its entry has ended.
bool Step::may_report_disabled(uint16_t rank) const { return process(rank).reports_disabled && !is_under_way(rank); }

void Step::report_disabled(uint16_t rank) {
  process(rank).reports_disabled = false;
  Event event;
  event.kind = EventKind::pt_disabled;
  event.fail = Fail::pt_disabled;
  post(rank, false, event);
}

// After the events of all messages of the entry.
bool Step::may_report_unlink(uint16_t rank, size_t place) const {
  const ListedEntry& listed = process(rank).entries[place];
  const bool is_due = !listed.is_linked && listed.is_link_reported && !listed.is_unlink_reported;
  if (!is_due || has_claims(rank, listed.appended_by)) return false;
  return std::none_of(state_.messages.begin(), state_.messages.end(), [&](const Message& message) {
    return is_used_by(message, rank) && message.entry == listed.appended_by;
  });
}

void Step::report_unlink(uint16_t rank, size_t place) {
  Process& target = process(rank);
  ListedEntry& listed = target.entries[place];
  const OperationName name{rank, listed.appended_by};
  listed.is_unlink_reported = true;
  if (!operation(name).entry.unlink_disable && machine_.setup(rank).has_queue) {
    post(rank, false, event_of_entry(EventKind::auto_unlink, name));
  }
  if (listed.list == List::priority) target.entries.erase(target.entries.begin() + static_cast<ptrdiff_t>(place));
}

bool Step::may_free(uint16_t rank, size_t place) const {
  const ListedEntry& listed = process(rank).entries[place];
  return listed.is_unlink_reported && !is_in_use(rank, listed.appended_by);
}

void Step::free(uint16_t rank, size_t place) {
  Process& target = process(rank);
  const OperationName name{rank, target.entries[place].appended_by};
  if (!operation(name).entry.unlink_disable && machine_.setup(rank).has_queue) {
    post(rank, false, event_of_entry(EventKind::auto_free, name));
  }
  target.entries.erase(target.entries.begin() + static_cast<ptrdiff_t>(place));
}

// Reports now, rather than later, what an entry owes.
void Step::report_end_of(uint16_t rank, uint16_t appended_by) {
  const std::vector<ListedEntry>& entries = process(rank).entries;
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const ListedEntry& listed) { return listed.appended_by == appended_by; });
  if (found == entries.end()) return;
  const auto place = static_cast<size_t>(found - entries.begin());
  const bool stays = found->list == List::overflow;
  if (may_report_unlink(rank, place)) report_unlink(rank, place);
  if (stays && may_free(rank, place)) free(rank, place);
}

// An overflow entry that is over is reported between the events of the append, or afterwards (`way`).
Code Step::append(uint16_t rank, uint16_t place, uint16_t way) {
  Process& target = process(rank);
  const Setup& setup = machine_.setup(rank);
  const Operation& appended = operation({rank, place});
  const Entry& entry = appended.entry;
  const auto in_list = std::count_if(target.entries.begin(), target.entries.end(), [&](const ListedEntry& listed) {
    return listed.is_linked && listed.list == appended.list;
  });
  if (target.entries.size() >= setup.entries_max || in_list >= setup.list_max) return Code::no_space;
  const bool counts_unexpected = entry.count_unexpected && entry.manage_local && !entry.use_once;
  uint16_t local_offset = 0;
  for (size_t at = 0; appended.list == List::priority && at < target.headers.size();) {
    const Header header = target.headers[at];
    if (!matches(entry, local_offset, header.name)) {
      ++at;
      continue;
    }
    target.headers.erase(target.headers.begin() + static_cast<ptrdiff_t>(at));
    take(rank, place, header, way == 0);
    if (counts_unexpected) local_offset = static_cast<uint16_t>(local_offset + requested_by(operation(header.name)));
    const bool is_used_up = entry.use_once || (counts_unexpected && is_exhausted(entry, local_offset));
    if (!is_used_up) continue;
    target.entries.push_back({place, appended.list, false, true, false, local_offset});
    if (!has_claims(rank, place)) report_unlink(rank, target.entries.size() - 1);
    return Code::ok;
  }
  target.entries.push_back({place, appended.list, true, false, false, local_offset});
  if (!has_claims(rank, place)) report_link(rank, target.entries.size() - 1);
  return Code::ok;
}

// Reports all that is owed: what a message has just made due, then the oldest entries first.
void Step::report_owed(uint16_t rank) {
  const auto report_claim_due = [&] {
    for (size_t place = 0; place < process(rank).claims.size(); ++place) {
      if (may_report_claim(rank, place)) return report_claim(rank, place), true;
    }
    return false;
  };
  const auto report_one = [&] {
    for (size_t place = 0; place < process(rank).entries.size(); ++place) {
      if (may_report_link(rank, place)) return report_link(rank, place), true;
      if (may_report_unlink(rank, place)) return report_unlink(rank, place), true;
      if (may_free(rank, place)) return free(rank, place), true;
    }
    if (report_claim_due()) return true;
    if (may_report_disabled(rank)) return report_disabled(rank), true;
    return false;
  };
  report_claim_due();
  while (report_one()) {
  }
}

// Reports a header that an operation has taken, or claims it, if its data or that of one before it is still to come.
void Step::take(uint16_t rank, uint16_t place, const Header& header, bool reports_end) {
  if (has_claims(rank, place) || !has_come(header)) return process(rank).claims.push_back({place, header});
  report_found(rank, place, header, true);
  if (reports_end) report_end_of(rank, header.entry);
}

// Claims of an operation are reported in the order of their headers, each when its message is.
bool Step::may_report_claim(uint16_t rank, size_t place) const {
  const std::vector<Claim>& claims = process(rank).claims;
  for (size_t before = 0; before < place; ++before) {
    if (claims[before].taken_by == claims[place].taken_by) return false;
  }
  return has_come(claims[place].header);
}

void Step::report_claim(uint16_t rank, size_t place) {
  std::vector<Claim>& claims = process(rank).claims;
  const Claim claim = claims[place];
  claims.erase(claims.begin() + static_cast<ptrdiff_t>(place));
  report_found(rank, claim.taken_by, claim.header, true);
  if (operation({rank, claim.taken_by}).kind == OperationKind::search && !has_claims(rank, claim.taken_by)) {
    end_search(rank, claim.taken_by);
  }
}

// After the events of all headers that the entry has found.
bool Step::may_report_link(uint16_t rank, size_t place) const {
  const ListedEntry& listed = process(rank).entries[place];
  return !listed.is_link_reported && !has_claims(rank, listed.appended_by);
}

void Step::report_link(uint16_t rank, size_t place) {
  ListedEntry& listed = process(rank).entries[place];
  const OperationName name{rank, listed.appended_by};
  listed.is_link_reported = true;
  if (!operation(name).entry.link_disable && machine_.setup(rank).has_queue) {
    post(rank, false, event_of_entry(EventKind::link, name));
  }
}

// An overflow or a search event, and its count, for a header that an appended entry or a search has found.
void Step::report_found(uint16_t rank, uint16_t place, const Header& header, bool removes) {
  const Entry& finder = operation({rank, place}).entry;
  Event event = event_of_message(header.name, header.entry, header.offset, header.moved);
  event.kind = removes ? overflow_kind(operation(header.name).kind) : EventKind::search;
  if (!removes) event.start = 0;  // implementations differ
  event.list = List::overflow;
  event.user_ptr = name_of(rank, place);
  if (machine_.setup(rank).has_queue && !(removes ? finder.over_disable : finder.comm_disable)) {
    post(rank, false, event);
  }
  if (finder.ct_overflow) add_to(rank, finder.counter, {finder.ct_bytes ? header.moved : uint16_t{1}, 0});
}

bool Step::is_linked(uint16_t rank, uint16_t appended_by) const {
  const std::vector<ListedEntry>& entries = process(rank).entries;
  return std::any_of(entries.begin(), entries.end(),
                     [&](const ListedEntry& listed) { return listed.appended_by == appended_by && listed.is_linked; });
}

// True if the append waits for a counter, or has fired and has not been performed yet.
bool Step::is_to_be_appended(uint16_t rank, uint16_t place) const {
  const auto holds_place = [&](const std::vector<uint16_t>& places) {
    return std::find(places.begin(), places.end(), place) != places.end();
  };
  const std::vector<Counter>& counters = process(rank).counters;
  return holds_place(process(rank).fired) || std::any_of(counters.begin(), counters.end(), [&](const Counter& counter) {
           return holds_place(counter.waiting);
         });
}

// Portals 4 leaves the result open (`way`) for an entry that has unlinked itself and is still in use, and for one whose
// append has not been performed yet.
Code Step::unlink(uint16_t rank, uint16_t place, uint16_t way) {
  const uint16_t appended_by = operation({rank, place}).number;
  const bool is_open =
      !is_linked(rank, appended_by) && (is_in_use(rank, appended_by) || is_to_be_appended(rank, appended_by));
  const bool has_messages = std::any_of(state_.messages.begin(), state_.messages.end(), [&](const Message& message) {
    return is_used_by(message, rank) && message.entry == appended_by;
  });
  const bool is_taking = has_messages || has_claims(rank, appended_by);
  if (is_open && machine_.rules_.unlink_tells_of_messages) agrees_ = is_taking == (way == 1);
  if (way == 1) {
    agrees_ = agrees_ && is_open;
    return Code::in_use;
  }
  return try_to_unlink(rank, appended_by);
}

Code Step::try_to_unlink(uint16_t rank, uint16_t appended_by) {
  if (!is_linked(rank, appended_by)) return Code::invalid;
  if (is_in_use(rank, appended_by)) return Code::in_use;
  std::erase_if(process(rank).entries, [&](const ListedEntry& listed) { return listed.appended_by == appended_by; });
  return Code::ok;
}

// `way`: the first bit as for append(); the second: the search needs no place among the entries.
Code Step::search(uint16_t rank, uint16_t place, uint16_t way) {
  Process& target = process(rank);
  const Operation& searching = operation({rank, place});
  const Entry& entry = searching.entry;
  const bool is_full = target.entries.size() >= machine_.setup(rank).entries_max;
  const bool needs_entry = way < 2;
  if (needs_entry && machine_.rules_.search_needs_no_entry) agrees_ = false;
  if (!needs_entry && !is_full && !machine_.rules_.search_needs_no_entry) agrees_ = false;  // the same as way - 2
  if (way % 2 == 1 && machine_.rules_.owes_nothing) agrees_ = false;
  if (needs_entry && is_full) return Code::no_space;
  bool has_found = false;
  for (size_t at = 0; at < target.headers.size() && !(has_found && entry.use_once);) {
    const Header header = target.headers[at];
    if (!matches(entry, 0, header.name)) {
      ++at;
      continue;
    }
    has_found = true;
    if (searching.removes) {
      target.headers.erase(target.headers.begin() + static_cast<ptrdiff_t>(at));
      take(rank, place, header, way % 2 == 0);
    } else {
      ++at;
      report_found(rank, place, header, false);
    }
  }
  if (!has_found && machine_.setup(rank).has_queue && (searching.removes || !entry.comm_disable)) {
    Event event = event_of_entry(EventKind::search, {rank, place});
    event.fail = Fail::no_match;
    post(rank, false, event);
  }
  if (!has_found && entry.ct_overflow) add_to(rank, entry.counter, {0, 1});
  if (has_found && !has_claims(rank, place)) end_search(rank, place);
  return Code::ok;
}

// The end of a search that has found all there is counts as a failure.
void Step::end_search(uint16_t rank, uint16_t place) {
  const Entry& entry = operation({rank, place}).entry;
  if (entry.ct_overflow && !entry.use_once) add_to(rank, entry.counter, {0, 1});
}

}  // namespace spinloom::model
