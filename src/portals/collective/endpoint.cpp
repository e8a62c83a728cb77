#include "portals/collective/endpoint.hpp"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "portals/collective/message_bits.hpp"
#include "portals/collective/offloaded.hpp"

namespace spinloom::collective {
namespace {

constexpr uint64_t block_mark = uint64_t{1} << 63;  // a bit of user pointers of events

}  // namespace

Result<std::unique_ptr<Endpoint>> Endpoint::open(portals::Interface& interface, const EndpointOptions& options,
                                                 const Meet& meet) {
  if (options.early_messages < 2 || options.early_messages % 2 != 0) {
    return fail(Code::invalid, "early_messages is ", options.early_messages, ": it must be even, and 2 at least");
  }
  std::unique_ptr<Endpoint> endpoint(new Endpoint(interface, options));
  if (const Status opened = endpoint->set_up(meet); !opened) {
    std::ignore = endpoint->close();
    return opened.error();
  }
  return endpoint;
}

Endpoint::~Endpoint() { std::ignore = close(); }

Status Endpoint::set_up(const Meet& meet) {
  SPL_ASSIGN(queue_, interface_.eq_alloc(events_max + 1, 1));
  SPL_ASSIGN(portal_, interface_.pt_alloc(queue_, {.flow_control = true, .index = options_.portal}));
  // A message that comes while there is no entry disables the portal table entry. That does not count: it is disabled
  // until the first entry exists, and events until then are dropped.
  SPL_TRY(interface_.pt_disable(portal_));
  // All memory of the process, for itself: local computations are atomics and puts to the own rank.
  nic::Entry self;
  self.length = UINT64_MAX;
  self.match_rank = interface_.rank();
  self.match_bits = bits::self;
  self.options.event_comm_disable = true;
  self.options.event_success_disable = true;
  self.options.event_unlink_disable = true;
  spend_call_time();
  SPL_ASSIGN(self_entry_, interface_.me_append(portal_, self));
  // Messages that come before all ranks are here were sent to an earlier Endpoint of this rank.
  SPL_ASSIGN(drop_all_entry_, append_drop_entry(0, ~uint64_t{0}));
  while (interface_.eq_get(queue_)) {
  }
  SPL_TRY(interface_.pt_enable(portal_));
  if (meet) SPL_TRY(meet(*this, 0));
  reserve_early_bytes(options_.ranks);
  SPL_TRY(link_blocks());
  SPL_TRY(append_notice_entry());
  SPL_ASSIGN(drop_entry_, append_drop_entry(bits::may_wait_mask, ~bits::may_wait_mask));
  SPL_TRY(wait_for("a message for an engine that is closed has not ended", [this] {
    const auto unlinked = interface_.me_unlink(drop_all_entry_);
    return !unlinked || *unlinked == portals::Unlinked::done;
  }));
  drop_all_entry_ = {};
  return meet ? meet(*this, 1) : Status{};
}

Result<nic::EntryId> Endpoint::append_drop_entry(uint64_t match_bits, uint64_t ignore_bits) {
  nic::Entry entry;
  entry.match_bits = match_bits;
  entry.ignore_bits = ignore_bits;
  entry.options.event_comm_disable = true;
  entry.options.event_unlink_disable = true;
  entry.options.unexpected_hdr_disable = true;
  spend_call_time();
  return interface_.me_append(portal_, entry, nic::ListKind::overflow);
}

void Endpoint::reserve_early_bytes(uint64_t peers) {
  early_bytes_ += early_bytes_of(peers);
  // A block holds a quarter of all that may come, so that there are few of them. The system gives its pages memory when
  // a message comes to them.
  block_bytes_ = std::max({uint64_t{64} << 10, 16 * options_.eager_bytes, early_bytes_ / 4});
}

Status Endpoint::join(const Team& team) {
  reserve_early_bytes(team.ranks.size());
  return link_blocks();
}

// The blocks that were linked for the team stay, and serve the next one.
void Endpoint::leave(const Team& team) { early_bytes_ -= early_bytes_of(team.ranks.size()); }

// Links as many empty blocks as needed. A block's end stays unused if it is shorter than a message.
Status Endpoint::link_blocks() {
  const auto usable = [this](uint64_t bytes) { return bytes - options_.eager_bytes; };
  uint64_t room = 0;
  uint64_t largest = 0;
  for (const auto& [number, entry] : linked_blocks_) {
    room += usable(blocks_.at(number).bytes);
    largest = std::max(largest, usable(blocks_.at(number).bytes));
  }
  while (room - largest < early_bytes_) {
    uint64_t number = next_block_;
    if (free_blocks_.empty()) {
      ++next_block_;
      blocks_[number] = {std::unique_ptr<uint8_t[]>(new uint8_t[block_bytes_]), block_bytes_};
    } else {
      number = free_blocks_.back();
      free_blocks_.pop_back();
    }
    const Block& block = blocks_.at(number);
    nic::Entry entry;
    entry.start = block.memory.get();
    entry.length = block.bytes;
    entry.match_bits = bits::may_wait;
    entry.ignore_bits = ~bits::may_wait_mask;
    entry.min_free = options_.eager_bytes;
    entry.options.manage_local = true;
    entry.options.event_comm_disable = true;
    entry.user_ptr = block_mark | number;
    spend_call_time();
    SPL_ASSIGN(const nic::EntryId entry_id, interface_.me_append(portal_, entry, nic::ListKind::overflow));
    linked_blocks_[number] = entry_id;
    room += usable(block.bytes);
    largest = std::max(largest, usable(block.bytes));
  }
  return {};
}

Status Endpoint::progress() {
  while (const std::optional<nic::Event> event = interface_.eq_get(queue_)) {
    SPL_ASSERT(!event->after_gap, "events are lost in spite of flow control");
    SPL_TRY(on_event(*event));
  }
  if (waiting_schedules_.empty()) return {};
  std::vector<Offloaded*> still_waiting;
  std::set<uint32_t> blocked_teams;  // schedules of these teams that start later wait behind
  for (Offloaded* const schedule : std::exchange(waiting_schedules_, {})) {
    if (const auto overrun = overrun_error_of(schedule->ranks_)) {
      schedule->fail_with(*overrun);
      continue;
    }
    bool is_resolved = false;
    if (!blocked_teams.contains(schedule->team_)) {
      const Result<bool> may_start = schedule->may_start_now();
      is_resolved = !may_start || *may_start;
      if (!may_start) schedule->fail_with(may_start.error());
      if (may_start && !is_resolved && failed_teams_.contains(schedule->team_)) {
        schedule->fail_with(fail(Code::fault,
                                 "a schedule of this team has failed, and its messages, which nobody takes, hold this ",
                                 "one up; make another team"));
        is_resolved = true;
        continue;
      }
      if (may_start && is_resolved) {
        if (const Status started = schedule->start_now(); !started) schedule->fail_with(started.error());
      }
    }
    if (is_resolved) continue;
    blocked_teams.insert(schedule->team_);
    still_waiting.push_back(schedule);
  }
  waiting_schedules_.insert(waiting_schedules_.begin(), still_waiting.begin(), still_waiting.end());
  return {};
}

Status Endpoint::on_event(const nic::Event& event) {
  const uint64_t number = event.user_ptr & ~block_mark;
  switch (event.kind) {
    case nic::EventKind::auto_unlink: linked_blocks_.erase(number); return link_blocks();
    case nic::EventKind::auto_free: free_blocks_.push_back(number); return {};
    case nic::EventKind::put: on_notice(event); return {};
    case nic::EventKind::pt_disabled: on_overrun(); return {};
    case nic::EventKind::put_overflow: {
      ++copied_messages_;
      const auto found = schedules_by_number_.find(event.user_ptr >> 32);
      if (found == schedules_by_number_.end()) return {};
      const Status copied = found->second->take_early(static_cast<uint32_t>(event.user_ptr), event);
      if (!copied) found->second->fail_with(copied.error());
      return {};
    }
    default: return {};
  }
}

uint32_t Endpoint::take_number(Team& team, bool cached) {
  uint32_t& next_number = cached ? team.next_cached : team.next_uncached;
  const uint32_t number = next_number;
  next_number = (number + 1) % bits::schedule_count;
  return number;
}

Result<std::unique_ptr<Offloaded>> Endpoint::make(Team& team, Graph graph, bool cached,
                                                  std::unique_ptr<uint8_t[]> memory,
                                                  std::optional<uint32_t> chosen_number) {
  const bool has_optional = std::ranges::any_of(graph.operations, [](const Vertex& one) { return one.optional; });
  if (has_optional && cached) {
    return fail(Code::unsupported, "a schedule with operations that may fail is started once; make it without a cache");
  }
  if (has_optional && options_.by_cpu) {
    return fail(Code::unsupported,
                "a schedule with operations that may fail goes on after its end, which only a NIC does; "
                "open an engine that does not leave its operations to the CPU");
  }
  const uint32_t number = chosen_number ? *chosen_number : take_number(team, cached);
  with_rendezvous(graph, options_.eager_bytes, options_.early_messages / 2, options_.initiator);
  std::unique_ptr<Offloaded> schedule(new Offloaded(*this, team, number, std::move(graph), cached, std::move(memory)));
  schedule->number_ = next_number_++ & 0x7fffffff;
  schedules_by_number_[schedule->number_] = schedule.get();
  return schedule;
}

Result<Counter> Endpoint::take_counter() {
  if (!idle_counters_.empty()) {
    const Counter counter = idle_counters_.back();
    idle_counters_.pop_back();
    return counter;
  }
  spend_call_time();
  // Only successes count: an operation that waits for a failed one never begins, because its data are not there.
  SPL_ASSIGN(const nic::CounterId id, interface_.ct_alloc(UINT32_MAX, true));
  return Counter{id, 0};
}

Result<bool> Endpoint::may_send(Member to, uint64_t messages) {
  Peer& peer = peers_[to];
  if (!peer.credit_counter.exists()) {
    SPL_ASSIGN(const Counter credits, take_counter());
    peer.credit_counter = credits.id;
    nic::Entry entry;
    entry.match_rank = {to.rank};
    entry.match_bits = bits::credit | bits::team_bits(to.team);
    entry.counter = peer.credit_counter;
    entry.options.ct_comm = true;
    entry.options.ct_overflow = true;
    entry.options.ct_peer_lost = true;
    entry.options.event_comm_disable = true;
    entry.options.event_over_disable = true;
    spend_call_time();
    SPL_ASSIGN(peer.credit_entry, interface_.me_append(portal_, entry));
    peer.credit_base = credits.base;
  }
  const nic::CounterValue value = interface_.ct_get(peer.credit_counter);
  if (value.failure > 0) return fail(Code::fault, "rank ", to.rank, " has not taken earlier messages: a peer is gone");
  const uint64_t credits = value.success - peer.credit_base;
  return peer.sent_messages + messages <= options_.early_messages + credits * (options_.early_messages / 2);
}

Status Endpoint::count_taken(Member from) {
  Peer& peer = peers_[from];
  ++peer.taken_messages;
  const uint64_t messages_per_credit = options_.early_messages / 2;
  if (peer.taken_messages - peer.reported_messages < messages_per_credit) return {};
  peer.reported_messages += messages_per_credit;
  sent_to_.insert(from.rank);
  nic::Put credit;
  credit.target = {from.rank};
  credit.portal = portal_;
  credit.match_bits = bits::credit | bits::team_bits(from.team);
  spend_call_time();
  return interface_.put(credit);
}

Status Endpoint::make_room(const Offloaded& newcomer, const NicResources& more, bool at_least_one) {
  const auto fits = [&] {
    return uint64_t{in_use_.counters} + more.counters <= options_.limits.counters &&
           uint64_t{in_use_.triggered} + more.triggered <= options_.limits.triggered &&
           uint64_t{in_use_.entries} + more.entries <= options_.limits.entries;
  };
  for (bool first = at_least_one; first || !fits(); first = false) {
    const auto idle = std::find_if(resident_schedules_.begin(), resident_schedules_.end(), [&](const Offloaded* one) {
      return one != &newcomer && one->cached_ && !one->under_way_;
    });
    if (idle == resident_schedules_.end()) {
      std::string beyond;
      const auto add_if_beyond = [&beyond](const char* what, uint32_t needed, uint32_t used, uint32_t limit) {
        if (uint64_t{needed} + used <= limit) return;
        beyond +=
            text(beyond.empty() ? "" : ", ", needed, " more ", what, " beside ", used, " in use (limit ", limit, ")");
      };
      add_if_beyond("counters", more.counters, in_use_.counters, options_.limits.counters);
      add_if_beyond("triggered operations", more.triggered, in_use_.triggered, options_.limits.triggered);
      add_if_beyond("entries", more.entries, in_use_.entries, options_.limits.entries);
      return fail(Code::exhausted, "the schedule needs ", beyond.empty() ? "more than the NIC has" : beyond,
                  ", and no cached schedule is idle; wait for others first");
    }
    (*idle)->leave_nic(!(*idle)->failure_);
    ++replaced_schedules_;
  }
  return {};
}

}  // namespace spinloom::collective
