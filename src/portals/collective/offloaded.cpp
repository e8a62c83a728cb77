#include "portals/collective/offloaded.hpp"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "portals/collective/message_bits.hpp"

namespace spinloom::collective {
namespace {

bool is_entry(Does what) { return what == Does::receive || what == Does::expose; }

std::vector<uint32_t> weights_of(const std::vector<size_t>& steps) {
  std::vector<uint32_t> weights;
  for (const size_t count : steps) weights.push_back(static_cast<uint32_t>(std::max<size_t>(1, count)));
  return weights;
}

}  // namespace

Offloaded::Offloaded(Endpoint& endpoint, const Endpoint::Team& team, uint32_t number, Graph graph, bool cached,
                     std::unique_ptr<uint8_t[]> memory)
    : endpoint_(endpoint),
      interface_(endpoint.interface_),
      ranks_(team.ranks),
      team_(team.id),
      bits_(bits::of_schedule(team.id, number, cached)),
      cached_(cached),
      graph_(std::move(graph)),
      memory_(std::move(memory)),
      steps_(graph_.operations.size()),
      whole_(nic::Descriptor::make()),
      descriptors_(graph_.operations.size()),
      receives_(graph_.operations.size()),
      enabled_(graph_.operations.size()) {
  cut_into_steps();
  // Exposed memory first. The append of a receive may find an early message, which may start the signal that memory is
  // exposed; the peer's get must find its entry then.
  for (const Does what : {Does::expose, Does::receive}) {
    for (uint32_t one = 0; one < graph_.operations.size(); ++one) {
      if (graph_.operations[one].what == what) appended_.push_back(one);
    }
  }
  for (uint32_t one = 0; one < graph_.operations.size(); ++one) {
    if (graph_.operations[one].cpu_dependent) cpu_dependent_.push_back(one);
  }
  std::vector<size_t> counts;
  for (const auto& steps : steps_) counts.push_back(steps.size());
  plan_ = plan_of(graph_, weights_of(counts), cached);
  needs_ = {plan_.descriptors, plan_.entries, plan_.triggered, plan_.counters(), graph_.memory_bytes};
  for (uint32_t one = 0; one < graph_.operations.size(); ++one) {
    const Vertex& operation = graph_.operations[one];
    if (has_message(operation.what)) partners_.insert(ranks_[operation.peer]);
    if (operation.what == Does::send && operation.early) ++early_sends_[ranks_[operation.peer]];
    if (operation.from.size() > 1 && !is_local(operation.what) && operation.what != Does::expose) {
      descriptors_[one] = nic::Descriptor::make(operation.from);
    }
    if (operation.what == Does::get || operation.what == Does::fetch) {
      if (operation.to.size() > 1) descriptors_[one] = nic::Descriptor::make(operation.to);
    }
  }
}

Offloaded::~Offloaded() {
  std::ignore = withdraw();
  if (is_posted_) leave(!under_way_ && !failure_ && plan_.is_certain);
  endpoint_.by_number_.erase(number_);
  endpoint_.forget(bits_);
}

// Cuts local computations into steps: an atomic has a longest length, and each end of a step lies in one piece.
void Offloaded::cut_into_steps() {
  for (uint32_t one = 0; one < graph_.operations.size(); ++one) {
    const Vertex& operation = graph_.operations[one];
    if (!is_local(operation.what)) continue;
    const uint64_t element = nic::bytes_of(operation.type);
    const uint64_t most =
        operation.what == Does::copy ? UINT64_MAX : endpoint_.options_.atomic_bytes / element * element;
    size_t from = 0;
    size_t to = 0;
    uint64_t from_done = 0;
    uint64_t to_done = 0;
    while (from < operation.from.size() && to < operation.to.size()) {
      const nic::IovecElement& source = operation.from[from];
      const nic::IovecElement& target = operation.to[to];
      const uint64_t bytes = std::min({most, source.length - from_done, target.length - to_done});
      steps_[one].push_back({source.base + from_done, target.base + to_done, bytes});
      if ((from_done += bytes) == source.length) ++from, from_done = 0;
      if ((to_done += bytes) == target.length) ++to, to_done = 0;
    }
    if (steps_[one].empty()) steps_[one].push_back({});
  }
}

uint64_t Offloaded::bits_of(const Vertex& operation) const { return bits_ | bits::of_message(operation.name); }

std::optional<nic::Trigger> Offloaded::trigger_of(const Wait& wait) const {
  if (wait.counter == counter_none) return {};
  nic::Trigger trigger{counters_[wait.counter].id, counters_[wait.counter].base + wait.value};
  if (cached_) trigger.every = plan_.each[wait.counter];
  return trigger;
}

Status Offloaded::post() {
  if (is_posted_) return {};
  if (is_over_) return fail(Code::invalid, "the schedule is not cached: it is started once");
  SPL_TRY(endpoint_.make_room(*this, needs_, false));
  for (;;) {
    Status brought = bring();
    if (brought) return {};
    if (brought.error().code != Code::exhausted) return brought;
    if (!endpoint_.make_room(*this, needs_, true)) return brought;
  }
}

Status Offloaded::bring() {
  place_ = endpoint_.resident_.insert(endpoint_.resident_.end(), this);
  is_posted_ = true;
  starts_ = 0;
  endpoint_.taken_ += needs_;
  endpoint_.sent_to_.insert(partners_.begin(), partners_.end());
  Status result;
  for (size_t number = 0; number < plan_.each.size() && result; ++number) {
    const bool is_unused = plan_.each[number] == 0 || (number == counter_gate && endpoint_.options_.by_cpu);
    if (number != counter_done && is_unused) {
      counters_.push_back({});
      continue;
    }
    Result<Counter> counter = endpoint_.take_counter();
    if (counter) {
      counters_.push_back(*counter);
    } else {
      result = counter.error();
    }
  }
  if (result && !endpoint_.options_.by_cpu) {
    interface_.bundle_begin();
    for (uint32_t one = 0; one < graph_.operations.size() && result; ++one) {
      if (const auto trigger = trigger_of(plan_.begins[one])) result = issue(one, trigger);
    }
    for (const Plan::Relay& relay : plan_.relays) {
      if (!result) break;
      endpoint_.spend();
      result = interface_.ct_inc(counter_of(relay.to), {1, 0}, trigger_of(relay.when));
    }
    const Status ended = interface_.bundle_end();
    if (result) result = ended;
  }
  if (!result) leave(true);
  return result;
}

// Gives the counters back, and drops all that waits for them. Their values follow from the number of starts if each
// start has ended.
void Offloaded::leave(bool counters_are_known) {
  for (size_t number = 0; number < counters_.size(); ++number) {
    Counter counter = counters_[number];
    if (!counter.id.exists()) continue;
    // Without persistent operations nothing waits any more where all has ended.
    const bool is_idle = counters_are_known && !cached_ && starts_ > 0;
    if (counters_are_known && (is_idle || interface_.ct_cancel(counter.id))) {
      counter.base += starts_ * plan_.each[number];
      endpoint_.give_back(counter);
    } else {
      std::ignore = interface_.ct_free(counter.id);
    }
  }
  counters_.clear();
  is_posted_ = false;
  endpoint_.resident_.erase(place_);
  endpoint_.taken_ -= needs_;
}

Status Offloaded::start() {
  if (under_way_) return fail(Code::invalid, "the schedule is under way; it can be started again when it has ended");
  if (failure_) return fail(Code::invalid, "an operation of the schedule has failed; make a new schedule");
  SPL_TRY(post());
  endpoint_.resident_.splice(endpoint_.resident_.end(), endpoint_.resident_, place_);
  under_way_ = true;
  ++all_starts_;
  is_over_ = !cached_;
  for (const uint32_t one : cpu_dependent_) enabled_[one] = false;
  waits_for_peer_ = false;
  if (const auto overrun = endpoint_.overrun_in(ranks_)) return fail_with(*overrun);
  if (!early_sends_.empty()) {
    // Starts of a team go in their order: one that needs fewer messages would take the credits of those before it.
    const bool others_wait =
        std::ranges::any_of(endpoint_.waiting_, [this](const Offloaded* one) { return one->team_ == team_; });
    Result<bool> now = false;
    if (!others_wait) now = may_go();
    if (!now) return fail_with(now.error());
    if (!*now) {
      waits_for_peer_ = true;
      endpoint_.waiting_.push_back(this);
      return {};
    }
  }
  if (const Status gone = go(); !gone) return fail_with(gone.error());
  return {};
}

Error Offloaded::fail_with(const Error& error) {
  if (!under_way_) return error;
  failure_ = error;
  under_way_ = false;
  waits_for_peer_ = false;
  std::erase(endpoint_.waiting_, this);
  endpoint_.failed_teams_.insert(team_);
  for (const uint32_t rank : partners_) {
    if (rank != interface_.rank().value) endpoint_.tell(rank, ranks_, bits_, all_starts_);
  }
  return error;
}

Result<bool> Offloaded::may_go() {
  for (const auto& [rank, messages] : early_sends_) {
    SPL_ASSIGN(const bool may_send, endpoint_.may_send({team_, rank}, messages));
    if (!may_send) return false;
  }
  return true;
}

Status Offloaded::go() {
  waits_for_peer_ = false;
  ++starts_;
  for (const auto& [rank, messages] : early_sends_) endpoint_.peers_[{team_, rank}].sent += messages;
  if (!appended_.empty()) {
    constexpr uint32_t appends_at_once = 1024;  // each may find an early message, which takes an event
    uint32_t appends = 0;
    interface_.bundle_begin();
    Status appended;
    for (const uint32_t one : appended_) {
      appended = append(one);
      if (!appended) break;
      if (++appends % appends_at_once != 0) continue;
      appended = interface_.bundle_end();
      if (appended) appended = endpoint_.progress();
      interface_.bundle_begin();
      if (!appended) break;
    }
    const Status ended = interface_.bundle_end();
    SPL_TRY(appended);
    SPL_TRY(ended);
    SPL_TRY(endpoint_.progress());
  }
  for (const uint32_t one : cpu_dependent_) {  // spl_enable() may come while a start waits for a peer
    if (enabled_[one]) SPL_TRY(interface_.ct_inc(counter_of(plan_.begins[one].counter), {1, 0}));
  }
  if (endpoint_.options_.by_cpu) {
    begun_.assign(graph_.operations.size() + plan_.relays.size(), false);
    return begin_by_cpu();
  }
  if (cached_) {
    if (plan_.each[counter_gate] == 0) return {};
    endpoint_.spend();
    return interface_.ct_inc(counter_of(counter_gate), {1, 0});
  }
  for (uint32_t one = 0; one < graph_.operations.size(); ++one) {
    if (plan_.begins[one].counter == counter_none && !is_entry(graph_.operations[one].what)) SPL_TRY(issue(one, {}));
  }
  return {};
}

bool Offloaded::has_come(const Wait& wait) const {
  const Counter& counter = counters_[wait.counter];
  return interface_.ct_get(counter.id).success >= counter.base + (starts_ - 1) * plan_.each[wait.counter] + wait.value;
}

// Begins the operations that the NIC would begin by triggers. Looks again after each round of them, because an
// operation that has begun may have ended at once.
Status Offloaded::begin_by_cpu() {
  const auto may_begin = [this](size_t number, const Wait& wait) {
    return !begun_[number] && (wait.counter == counter_none || wait.counter == counter_gate || has_come(wait));
  };
  for (bool again = true; again;) {
    again = false;
    for (uint32_t one = 0; one < graph_.operations.size(); ++one) {
      if (is_entry(graph_.operations[one].what) || !may_begin(one, plan_.begins[one])) continue;
      again = begun_[one] = true;
      SPL_TRY(issue(one, {}));
    }
    for (uint32_t one = 0; one < plan_.relays.size(); ++one) {
      const size_t number = graph_.operations.size() + one;
      if (!may_begin(number, plan_.relays[one].when)) continue;
      again = begun_[number] = true;
      endpoint_.spend();
      SPL_TRY(interface_.ct_inc(counter_of(plan_.relays[one].to), {1, 0}));
    }
  }
  return {};
}

Result<bool> Offloaded::has_ended(bool with_failures) {
  bool all = true;
  for (uint32_t number = 0; number < counters_.size() && all; ++number) {
    if (number != counter_done && !plan_.has_any[number]) continue;
    const nic::CounterValue value = interface_.ct_get(counters_[number].id);
    all = value.success >= counters_[number].base + starts_ * plan_.each[number];
  }
  if (all) return true;
  // Operations that wait for a failed one never begin, so a schedule with a failure would stay under way for ever. To
  // read all counters takes longer than to see that it has not ended: most calls do not.
  constexpr uint64_t looks_between = 64;
  if (!with_failures && ++looks_ % looks_between != 0) return false;
  uint64_t failures = 0;
  for (size_t number = 0; number < counters_.size(); ++number) {
    if (!counters_[number].id.exists() || plan_.uncertain[number]) continue;
    failures += interface_.ct_get(counters_[number].id).failure;
  }
  if (failures == 0) return false;
  return fail(Code::fault, failures, " operations of the schedule have failed: a peer is gone or has run out of ",
              "unexpected headers, or an entry does not allow them");
}

Result<bool> Offloaded::test(bool with_failures) {
  if (failure_) return *failure_;
  if (!under_way_) return true;
  SPL_TRY(endpoint_.progress());
  if (failure_) return *failure_;
  const std::optional<Error> trouble =
      plan_.is_certain ? endpoint_.trouble_of(ranks_, bits_, all_starts_) : endpoint_.overrun_in(ranks_);
  if (waits_for_peer_) {
    if (trouble) return fail_with(*trouble);
    return false;
  }
  if (endpoint_.options_.by_cpu) {
    if (const Status begun = begin_by_cpu(); !begun) return fail_with(begun.error());
  }
  const Result<bool> ended = has_ended(with_failures);
  if (!ended) return fail_with(trouble ? *trouble : ended.error());
  if (!*ended) {
    if (trouble) return fail_with(*trouble);
    return false;
  }
  under_way_ = false;
  if (!cached_ && plan_.is_certain) leave(true);
  return true;
}

Status Offloaded::wait() {
  for (;;) {
    SPL_ASSIGN(const bool ended, test(true));
    if (ended) return {};
    SPL_TRY(interface_.port().wait());
  }
}

// Returns the operation that begins when the given one does: for exposed memory, the signal that it is exposed.
uint32_t Offloaded::beginning_of(uint32_t given) const {
  const uint32_t number = graph_.number_of.at(given);
  return graph_.operations[number].what == Does::expose ? number - 1 : number;
}

Offloaded::State Offloaded::state(uint32_t given) const {
  const uint32_t number = beginning_of(given);
  if (!is_posted_) return is_over_ ? State::executed : State::created;
  if (!under_way_) return starts_ > 0 ? State::executed : State::posted;
  if (waits_for_peer_) return State::posted;
  const Wait& wait = plan_.begins[number];
  if (wait.counter == counter_none || wait.counter == counter_gate) return State::active;
  return has_come(wait) ? State::executed : State::posted;
}

Status Offloaded::enable(uint32_t given) {
  if (given >= this->given() || !graph_.operations[beginning_of(given)].cpu_dependent) {
    return fail(Code::invalid, "operation ", given, " is not CPU-dependent");
  }
  const uint32_t number = beginning_of(given);
  if (!under_way_) return fail(Code::invalid, "the schedule is not under way: operations are enabled after its start");
  if (enabled_[number]) return {};
  enabled_[number] = true;
  if (waits_for_peer_) return {};
  endpoint_.spend();
  return interface_.ct_inc(counter_of(plan_.begins[number].counter), {1, 0});
}

Result<bool> Offloaded::disable(uint32_t given) {
  if (given >= this->given() || !graph_.operations[beginning_of(given)].cpu_dependent) {
    return fail(Code::invalid, "operation ", given, " is not CPU-dependent");
  }
  const uint32_t number = beginning_of(given);
  if (!under_way_ || !enabled_[number]) return true;
  if (waits_for_peer_) {
    enabled_[number] = false;
    return true;
  }
  const Wait& wait = plan_.begins[number];
  const Counter& counter = counters_[wait.counter];
  endpoint_.spend();
  SPL_ASSIGN(const uint64_t after, interface_.ct_take_back(counter.id));
  const uint64_t begins_at = counter.base + (starts_ - 1) * plan_.each[wait.counter] + wait.value;
  if (after + 1 < begins_at) {
    enabled_[number] = false;
    return true;
  }
  SPL_TRY(interface_.ct_inc(counter.id, {1, 0}));
  return false;
}

// Takes entries back from their list. True if no message works on any of them any more.
bool Offloaded::has_left() {
  bool all = true;
  for (nic::EntryId& entry : receives_) {
    if (!entry.exists()) continue;
    const Result<portals::Unlinked> unlinked = interface_.me_unlink(entry);
    if (unlinked && *unlinked == portals::Unlinked::in_use) {
      all = false;
    } else {
      entry = {};
    }
  }
  return all;
}

bool Offloaded::is_quiet() {
  return has_left() && !whole_->in_use() &&
         std::ranges::none_of(descriptors_, [](const nic::DescriptorRef& one) { return one && one->in_use(); });
}

Status Offloaded::withdraw() {
  std::erase(endpoint_.waiting_, this);
  if (!under_way_ && !failure_ && plan_.is_certain) return {};
  // Operations that wait for a counter never begin now. Others end by themselves, or by the loss of their peer.
  for (const Counter& counter : counters_) {
    if (counter.id.exists()) std::ignore = interface_.ct_cancel(counter.id);
  }
  if (under_way_) failure_ = fail(Code::invalid, "the schedule has been withdrawn");
  under_way_ = false;
  return endpoint_.wait_for("a peer is reading or writing memory of the schedule, and has not ended",
                            [this] { return is_quiet(); });
}

}  // namespace spinloom::collective
