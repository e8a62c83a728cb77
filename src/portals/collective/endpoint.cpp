#include "portals/collective/endpoint.hpp"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "portals/collective/message_bits.hpp"
#include "portals/collective/offloaded.hpp"

namespace spinloom::collective {
namespace {

constexpr uint64_t block_mark = uint64_t{1} << 63;  // in user pointers of events

}  // namespace

Result<std::unique_ptr<Endpoint>> Endpoint::open(portals::Interface& interface, const EndpointOptions& options,
                                                 const Meet& meet) {
  if (options.early_messages < 2 || options.early_messages % 2 != 0) {
    return fail(Code::invalid, "early_messages is ", options.early_messages, ": it must be even, and 2 at least");
  }
  std::unique_ptr<Endpoint> endpoint(new Endpoint(interface, options));
  if (const Status made = endpoint->set_up(meet); !made) {
    std::ignore = endpoint->close();
    return made.error();
  }
  return endpoint;
}

Endpoint::~Endpoint() { std::ignore = close(); }

Status Endpoint::set_up(const Meet& meet) {
  SPL_ASSIGN(queue_, interface_.eq_alloc(events_most + 1, 1));
  SPL_ASSIGN(portal_, interface_.pt_alloc(queue_, {.flow_control = true, .want = options_.portal}));
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
  spend();
  SPL_ASSIGN(self_, interface_.me_append(portal_, self));
  // Messages that come before all ranks are here were sent to an earlier Endpoint of this rank.
  SPL_ASSIGN(swallows_all_, swallow(0, ~uint64_t{0}));
  while (interface_.eq_get(queue_)) {
  }
  SPL_TRY(interface_.pt_enable(portal_));
  if (meet) SPL_TRY(meet(*this, 0));
  expect(options_.ranks);
  SPL_TRY(keep_room());
  SPL_TRY(listen());
  SPL_ASSIGN(swallows_, swallow(bits::may_wait_mask, ~bits::may_wait_mask));
  SPL_TRY(wait_for("a message for an engine that is closed has not ended", [this] {
    const auto unlinked = interface_.me_unlink(swallows_all_);
    return !unlinked || *unlinked == portals::Unlinked::done;
  }));
  swallows_all_ = {};
  return meet ? meet(*this, 1) : Status{};
}

Result<nic::EntryId> Endpoint::swallow(uint64_t match_bits, uint64_t ignore_bits) {
  nic::Entry entry;
  entry.match_bits = match_bits;
  entry.ignore_bits = ignore_bits;
  entry.options.event_comm_disable = true;
  entry.options.event_unlink_disable = true;
  entry.options.unexpected_hdr_disable = true;
  spend();
  return interface_.me_append(portal_, entry, nic::ListKind::overflow);
}

void Endpoint::expect(uint64_t peers) {
  early_bytes_ += early_bytes_of(peers);
  // A block holds a quarter of all that may come, so that there are few of them. The system gives its pages memory when
  // a message comes to them.
  block_bytes_ = std::max({uint64_t{64} << 10, 16 * options_.eager_bytes, early_bytes_ / 4});
}

Status Endpoint::join(const Team& team) {
  expect(team.ranks.size());
  return keep_room();
}

// The blocks that were linked for the team stay, and serve the next one.
void Endpoint::part(const Team& team) { early_bytes_ -= early_bytes_of(team.ranks.size()); }

// Links as many empty blocks as needed. A block's end stays unused if it is shorter than a message.
Status Endpoint::keep_room() {
  const auto usable = [this](uint64_t bytes) { return bytes - options_.eager_bytes; };
  uint64_t room = 0;
  uint64_t most = 0;
  for (const auto& [number, entry] : linked_) {
    room += usable(blocks_.at(number).bytes);
    most = std::max(most, usable(blocks_.at(number).bytes));
  }
  while (room - most < early_bytes_) {
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
    spend();
    SPL_ASSIGN(const nic::EntryId linked, interface_.me_append(portal_, entry, nic::ListKind::overflow));
    linked_[number] = linked;
    room += usable(block.bytes);
    most = std::max(most, usable(block.bytes));
  }
  return {};
}

Status Endpoint::progress() {
  while (const std::optional<nic::Event> event = interface_.eq_get(queue_)) {
    SPL_ASSERT(!event->after_gap, "events are lost in spite of flow control");
    SPL_TRY(take(*event));
  }
  if (waiting_.empty()) return {};
  std::vector<Offloaded*> still;
  std::set<uint32_t> blocked;  // teams: what starts later waits behind
  for (Offloaded* const one : std::exchange(waiting_, {})) {
    if (const auto overrun = overrun_in(one->ranks_)) {
      one->fail_with(*overrun);
      continue;
    }
    bool goes = false;
    if (!blocked.contains(one->team_)) {
      const Result<bool> may_go = one->may_go();
      goes = !may_go || *may_go;
      if (!may_go) one->fail_with(may_go.error());
      if (may_go && !goes && failed_teams_.contains(one->team_)) {
        one->fail_with(fail(Code::fault,
                            "a schedule of this team has failed, and its messages, which nobody takes, hold this ",
                            "one up; make another team"));
        goes = true;
        continue;
      }
      if (may_go && goes) {
        if (const Status gone = one->go(); !gone) one->fail_with(gone.error());
      }
    }
    if (goes) continue;
    blocked.insert(one->team_);
    still.push_back(one);
  }
  waiting_.insert(waiting_.begin(), still.begin(), still.end());
  return {};
}

Status Endpoint::take(const nic::Event& event) {
  const uint64_t number = event.user_ptr & ~block_mark;
  switch (event.kind) {
    case nic::EventKind::auto_unlink: linked_.erase(number); return keep_room();
    case nic::EventKind::auto_free: free_blocks_.push_back(number); return {};
    case nic::EventKind::put: hear(event); return {};
    case nic::EventKind::pt_disabled: be_overrun(); return {};
    case nic::EventKind::put_overflow: {
      ++early_;
      const auto found = by_number_.find(event.user_ptr >> 32);
      if (found == by_number_.end()) return {};
      const Status taken = found->second->take_early(static_cast<uint32_t>(event.user_ptr), event);
      if (!taken) found->second->fail_with(taken.error());
      return {};
    }
    default: return {};
  }
}

uint32_t Endpoint::take_number(Team& team, bool cached) {
  uint32_t& next = cached ? team.cached : team.once;
  const uint32_t number = next;
  next = (number + 1) % bits::schedules;
  return number;
}

Result<std::unique_ptr<Offloaded>> Endpoint::make(Team& team, Graph graph, bool cached,
                                                  std::unique_ptr<uint8_t[]> memory, std::optional<uint32_t> given) {
  const bool has_optional = std::ranges::any_of(graph.operations, [](const Vertex& one) { return one.optional; });
  if (has_optional && cached) {
    return fail(Code::unsupported, "a schedule with operations that may fail is started once; make it without a cache");
  }
  if (has_optional && options_.by_cpu) {
    return fail(Code::unsupported,
                "a schedule with operations that may fail goes on after its end, which only a NIC does; "
                "open an engine that does not leave its operations to the CPU");
  }
  const uint32_t number = given ? *given : take_number(team, cached);
  with_rendezvous(graph, options_.eager_bytes, options_.early_messages / 2, options_.initiator);
  std::unique_ptr<Offloaded> made(new Offloaded(*this, team, number, std::move(graph), cached, std::move(memory)));
  made->number_ = next_number_++ & 0x7fffffff;
  by_number_[made->number_] = made.get();
  return made;
}

Result<Counter> Endpoint::take_counter() {
  if (!idle_counters_.empty()) {
    const Counter counter = idle_counters_.back();
    idle_counters_.pop_back();
    return counter;
  }
  spend();
  // Only successes count: an operation that waits for a failed one never begins, because its data are not there.
  SPL_ASSIGN(const nic::CounterId id, interface_.ct_alloc(UINT32_MAX, true));
  return Counter{id, 0};
}

Result<bool> Endpoint::may_send(Member to, uint64_t messages) {
  Peer& peer = peers_[to];
  if (!peer.credits.exists()) {
    SPL_ASSIGN(const Counter credits, take_counter());
    peer.credits = credits.id;
    nic::Entry entry;
    entry.match_rank = {to.rank};
    entry.match_bits = bits::credit | bits::of_team(to.team);
    entry.counter = peer.credits;
    entry.options.ct_comm = true;
    entry.options.ct_overflow = true;
    entry.options.ct_peer_lost = true;
    entry.options.event_comm_disable = true;
    entry.options.event_over_disable = true;
    spend();
    SPL_ASSIGN(peer.credit_entry, interface_.me_append(portal_, entry));
    peer.credit_base = credits.base;
  }
  const nic::CounterValue value = interface_.ct_get(peer.credits);
  if (value.failure > 0) return fail(Code::fault, "rank ", to.rank, " has not taken earlier messages: a peer is gone");
  const uint64_t credits = value.success - peer.credit_base;
  return peer.sent + messages <= options_.early_messages + credits * (options_.early_messages / 2);
}

Status Endpoint::took(Member from) {
  Peer& peer = peers_[from];
  ++peer.taken;
  const uint64_t half = options_.early_messages / 2;
  if (peer.taken - peer.told < half) return {};
  peer.told += half;
  sent_to_.insert(from.rank);
  nic::Put credit;
  credit.target = {from.rank};
  credit.portal = portal_;
  credit.match_bits = bits::credit | bits::of_team(from.team);
  spend();
  return interface_.put(credit);
}

Status Endpoint::make_room(const Offloaded& for_whom, const Taken& more, bool at_least_one) {
  const auto fits = [&] {
    return uint64_t{taken_.counters} + more.counters <= options_.limits.counters &&
           uint64_t{taken_.triggered} + more.triggered <= options_.limits.triggered &&
           uint64_t{taken_.entries} + more.entries <= options_.limits.entries;
  };
  for (bool first = at_least_one; first || !fits(); first = false) {
    const auto found = std::find_if(resident_.begin(), resident_.end(), [&](const Offloaded* one) {
      return one != &for_whom && one->cached_ && !one->under_way_;
    });
    if (found == resident_.end()) {
      std::string beyond;
      const auto name = [&beyond](const char* what, uint32_t needed, uint32_t used, uint32_t limit) {
        if (uint64_t{needed} + used <= limit) return;
        beyond +=
            text(beyond.empty() ? "" : ", ", needed, " more ", what, " beside ", used, " in use (limit ", limit, ")");
      };
      name("counters", more.counters, taken_.counters, options_.limits.counters);
      name("triggered operations", more.triggered, taken_.triggered, options_.limits.triggered);
      name("entries", more.entries, taken_.entries, options_.limits.entries);
      return fail(Code::exhausted, "the schedule needs ", beyond.empty() ? "more than the NIC has" : beyond,
                  ", and no cached schedule is idle; wait for others first");
    }
    (*found)->leave(!(*found)->failure_);
    ++replaced_;
  }
  return {};
}

}  // namespace spinloom::collective
