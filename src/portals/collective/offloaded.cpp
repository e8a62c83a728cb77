#include "portals/collective/offloaded.hpp"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "portals/collective/message_bits.hpp"

namespace spinloom::collective {
namespace {

bool is_entry(VertexKind kind) { return kind == VertexKind::receive || kind == VertexKind::expose; }

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
      schedule_bits_(bits::schedule_bits(team.id, number, cached)),
      cached_(cached),
      graph_(std::move(graph)),
      memory_(std::move(memory)),
      steps_(graph_.operations.size()),
      contiguous_descriptor_(nic::Descriptor::make()),
      descriptors_(graph_.operations.size()),
      receives_(graph_.operations.size()),
      enabled_(graph_.operations.size()) {
  cut_into_steps();
  // Exposed memory first. The append of a receive may find an early message, which may start the signal that memory is
  // exposed; the peer's get must find its entry then.
  for (const VertexKind kind : {VertexKind::expose, VertexKind::receive}) {
    for (uint32_t vertex = 0; vertex < graph_.operations.size(); ++vertex) {
      if (graph_.operations[vertex].kind == kind) entry_operations_.push_back(vertex);
    }
  }
  for (uint32_t vertex = 0; vertex < graph_.operations.size(); ++vertex) {
    if (graph_.operations[vertex].cpu_dependent) cpu_dependent_operations_.push_back(vertex);
  }
  std::vector<size_t> counts;
  for (const auto& steps : steps_) counts.push_back(steps.size());
  plan_ = plan_of(graph_, weights_of(counts), cached);
  resources_ = {plan_.descriptors, plan_.entries, plan_.triggered, plan_.counters(), graph_.memory_bytes};
  for (uint32_t vertex = 0; vertex < graph_.operations.size(); ++vertex) {
    const Vertex& operation = graph_.operations[vertex];
    if (has_message(operation.kind)) partners_.insert(ranks_[operation.peer]);
    if (operation.kind == VertexKind::send && operation.early) ++early_sends_[ranks_[operation.peer]];
    if (operation.from.size() > 1 && !is_local(operation.kind) && operation.kind != VertexKind::expose) {
      descriptors_[vertex] = nic::Descriptor::make(operation.from);
    }
    if (operation.kind == VertexKind::get || operation.kind == VertexKind::fetch) {
      if (operation.to.size() > 1) descriptors_[vertex] = nic::Descriptor::make(operation.to);
    }
  }
}

Offloaded::~Offloaded() {
  std::ignore = withdraw();
  if (is_posted_) leave_nic(!under_way_ && !failure_ && plan_.is_certain);
  endpoint_.schedules_by_number_.erase(number_);
  endpoint_.forget_notices_of(schedule_bits_);
}

// Cuts local computations into steps: an atomic has a longest length, and each end of a step lies in one piece.
void Offloaded::cut_into_steps() {
  for (uint32_t number = 0; number < graph_.operations.size(); ++number) {
    const Vertex& operation = graph_.operations[number];
    if (!is_local(operation.kind)) continue;
    const uint64_t element = nic::bytes_of(operation.type);
    const uint64_t step_bytes_max =
        operation.kind == VertexKind::copy ? UINT64_MAX : endpoint_.options_.atomic_bytes / element * element;
    size_t from = 0;
    size_t to = 0;
    uint64_t from_done = 0;
    uint64_t to_done = 0;
    while (from < operation.from.size() && to < operation.to.size()) {
      const nic::IovecElement& source = operation.from[from];
      const nic::IovecElement& target = operation.to[to];
      const uint64_t bytes = std::min({step_bytes_max, source.length - from_done, target.length - to_done});
      steps_[number].push_back({source.base + from_done, target.base + to_done, bytes});
      if ((from_done += bytes) == source.length) ++from, from_done = 0;
      if ((to_done += bytes) == target.length) ++to, to_done = 0;
    }
    if (steps_[number].empty()) steps_[number].push_back({});
  }
}

uint64_t Offloaded::bits_of(const Vertex& operation) const {
  return schedule_bits_ | bits::message_bits(operation.name);
}

std::optional<nic::Trigger> Offloaded::trigger_of(const Wait& wait) const {
  if (wait.counter == counter_none) return {};
  nic::Trigger trigger{counters_[wait.counter].id, counters_[wait.counter].base + wait.value};
  if (cached_) trigger.every = plan_.growth[wait.counter];
  return trigger;
}

Status Offloaded::post() {
  if (is_posted_) return {};
  if (is_over_) return fail(Code::invalid, "the schedule is not cached: it is started once");
  SPL_TRY(endpoint_.make_room(*this, resources_, false));
  for (;;) {
    Status brought = bring_to_nic();
    if (brought) return {};
    if (brought.error().code != Code::exhausted) return brought;
    if (!endpoint_.make_room(*this, resources_, true)) return brought;
  }
}

Status Offloaded::bring_to_nic() {
  resident_place_ = endpoint_.resident_schedules_.insert(endpoint_.resident_schedules_.end(), this);
  is_posted_ = true;
  starts_ = 0;
  endpoint_.in_use_ += resources_;
  endpoint_.sent_to_.insert(partners_.begin(), partners_.end());
  Status result;
  for (size_t number = 0; number < plan_.growth.size() && result; ++number) {
    const bool is_unused = plan_.growth[number] == 0 || (number == counter_gate && endpoint_.options_.by_cpu);
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
    for (uint32_t number = 0; number < graph_.operations.size() && result; ++number) {
      if (const auto trigger = trigger_of(plan_.begins[number])) result = issue(number, trigger);
    }
    for (const Plan::Relay& relay : plan_.relays) {
      if (!result) break;
      endpoint_.spend_call_time();
      result = interface_.ct_inc(counter_of(relay.to), {1, 0}, trigger_of(relay.when));
    }
    const Status ended = interface_.bundle_end();
    if (result) result = ended;
  }
  if (!result) leave_nic(true);
  return result;
}

// Gives the counters back, and drops all that waits for them. Their values follow from the number of starts if each
// start has ended.
void Offloaded::leave_nic(bool counters_are_known) {
  for (size_t number = 0; number < counters_.size(); ++number) {
    Counter counter = counters_[number];
    if (!counter.id.exists()) continue;
    // Without persistent operations nothing waits any more where all has ended.
    const bool is_idle = counters_are_known && !cached_ && starts_ > 0;
    if (counters_are_known && (is_idle || interface_.ct_cancel(counter.id))) {
      counter.base += starts_ * plan_.growth[number];
      endpoint_.give_back(counter);
    } else {
      std::ignore = interface_.ct_free(counter.id);
    }
  }
  counters_.clear();
  is_posted_ = false;
  endpoint_.resident_schedules_.erase(resident_place_);
  endpoint_.in_use_ -= resources_;
}

Status Offloaded::start() {
  if (under_way_) return fail(Code::invalid, "the schedule is under way; it can be started again when it has ended");
  if (failure_) return fail(Code::invalid, "an operation of the schedule has failed; make a new schedule");
  SPL_TRY(post());
  endpoint_.resident_schedules_.splice(endpoint_.resident_schedules_.end(), endpoint_.resident_schedules_,
                                       resident_place_);
  under_way_ = true;
  ++all_starts_;
  is_over_ = !cached_;
  for (const uint32_t number : cpu_dependent_operations_) enabled_[number] = false;
  waits_for_peer_ = false;
  if (const auto overrun = endpoint_.overrun_error_of(ranks_)) return fail_with(*overrun);
  if (!early_sends_.empty()) {
    // Starts of a team go in their order: one that needs fewer messages would take the credits of those before it.
    const bool others_wait =
        std::ranges::any_of(endpoint_.waiting_schedules_, [this](const Offloaded* one) { return one->team_ == team_; });
    Result<bool> may_start = false;
    if (!others_wait) may_start = may_start_now();
    if (!may_start) return fail_with(may_start.error());
    if (!*may_start) {
      waits_for_peer_ = true;
      endpoint_.waiting_schedules_.push_back(this);
      return {};
    }
  }
  if (const Status started = start_now(); !started) return fail_with(started.error());
  return {};
}

Error Offloaded::fail_with(const Error& error) {
  if (!under_way_) return error;
  failure_ = error;
  under_way_ = false;
  waits_for_peer_ = false;
  std::erase(endpoint_.waiting_schedules_, this);
  endpoint_.failed_teams_.insert(team_);
  for (const uint32_t rank : partners_) {
    if (rank != interface_.rank().value) endpoint_.send_notice(rank, ranks_, schedule_bits_, all_starts_);
  }
  return error;
}

Result<bool> Offloaded::may_start_now() {
  for (const auto& [rank, messages] : early_sends_) {
    SPL_ASSIGN(const bool may_send, endpoint_.may_send({team_, rank}, messages));
    if (!may_send) return false;
  }
  return true;
}

Status Offloaded::start_now() {
  waits_for_peer_ = false;
  ++starts_;
  for (const auto& [rank, messages] : early_sends_) endpoint_.peers_[{team_, rank}].sent_messages += messages;
  if (!entry_operations_.empty()) {
    constexpr uint32_t appends_at_once = 1024;  // each may find an early message, which takes an event
    uint32_t appends = 0;
    interface_.bundle_begin();
    Status appended;
    for (const uint32_t number : entry_operations_) {
      appended = append(number);
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
  for (const uint32_t number : cpu_dependent_operations_) {  // spl_enable() may come while a start waits for a peer
    if (enabled_[number]) SPL_TRY(interface_.ct_inc(counter_of(plan_.begins[number].counter), {1, 0}));
  }
  if (endpoint_.options_.by_cpu) {
    begun_.assign(graph_.operations.size() + plan_.relays.size(), false);
    return begin_by_cpu();
  }
  if (cached_) {
    if (plan_.growth[counter_gate] == 0) return {};
    endpoint_.spend_call_time();
    return interface_.ct_inc(counter_of(counter_gate), {1, 0});
  }
  for (uint32_t number = 0; number < graph_.operations.size(); ++number) {
    if (plan_.begins[number].counter == counter_none && !is_entry(graph_.operations[number].kind))
      SPL_TRY(issue(number, {}));
  }
  return {};
}

bool Offloaded::is_met(const Wait& wait) const {
  const Counter& counter = counters_[wait.counter];
  return interface_.ct_get(counter.id).success >=
         counter.base + (starts_ - 1) * plan_.growth[wait.counter] + wait.value;
}

// Begins the operations that the NIC would begin by triggers. Looks again after each round of them, because an
// operation that has begun may have ended at once.
Status Offloaded::begin_by_cpu() {
  const auto may_begin = [this](size_t number, const Wait& wait) {
    return !begun_[number] && (wait.counter == counter_none || wait.counter == counter_gate || is_met(wait));
  };
  for (bool again = true; again;) {
    again = false;
    for (uint32_t number = 0; number < graph_.operations.size(); ++number) {
      if (is_entry(graph_.operations[number].kind) || !may_begin(number, plan_.begins[number])) continue;
      again = begun_[number] = true;
      SPL_TRY(issue(number, {}));
    }
    for (uint32_t relay = 0; relay < plan_.relays.size(); ++relay) {
      const size_t number = graph_.operations.size() + relay;
      if (!may_begin(number, plan_.relays[relay].when)) continue;
      again = begun_[number] = true;
      endpoint_.spend_call_time();
      SPL_TRY(interface_.ct_inc(counter_of(plan_.relays[relay].to), {1, 0}));
    }
  }
  return {};
}

Result<bool> Offloaded::check_end(bool with_failures) {
  bool have_all = true;
  for (uint32_t number = 0; number < counters_.size() && have_all; ++number) {
    if (number != counter_done && !plan_.has_any[number]) continue;
    const nic::CounterValue value = interface_.ct_get(counters_[number].id);
    have_all = value.success >= counters_[number].base + starts_ * plan_.growth[number];
  }
  if (have_all) return true;
  // Operations that wait for a failed one never begin, so a schedule with a failure would stay under way for ever. To
  // read all counters takes longer than to see that it has not ended: most calls do not.
  constexpr uint64_t looks_between = 64;
  if (!with_failures && ++looks_ % looks_between != 0) return false;
  uint64_t failures = 0;
  for (size_t number = 0; number < counters_.size(); ++number) {
    if (!counters_[number].id.exists() || plan_.is_uncertain[number]) continue;
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
  const std::optional<Error> error =
      plan_.is_certain ? endpoint_.error_of(ranks_, schedule_bits_, all_starts_) : endpoint_.overrun_error_of(ranks_);
  if (waits_for_peer_) {
    if (error) return fail_with(*error);
    return false;
  }
  if (endpoint_.options_.by_cpu) {
    if (const Status begun = begin_by_cpu(); !begun) return fail_with(begun.error());
  }
  const Result<bool> has_ended = check_end(with_failures);
  if (!has_ended) return fail_with(error ? *error : has_ended.error());
  if (!*has_ended) {
    if (error) return fail_with(*error);
    return false;
  }
  under_way_ = false;
  if (!cached_ && plan_.is_certain) leave_nic(true);
  return true;
}

Status Offloaded::wait() {
  for (;;) {
    SPL_ASSIGN(const bool has_ended, test(true));
    if (has_ended) return {};
    SPL_TRY(interface_.port().wait());
  }
}

// Returns the operation that begins when the given one does: for exposed memory, the signal that it is exposed.
uint32_t Offloaded::beginning_of(uint32_t original) const {
  const uint32_t number = graph_.number_of.at(original);
  return graph_.operations[number].kind == VertexKind::expose ? number - 1 : number;
}

Offloaded::State Offloaded::state(uint32_t original) const {
  const uint32_t number = beginning_of(original);
  if (!is_posted_) return is_over_ ? State::executed : State::created;
  if (!under_way_) return starts_ > 0 ? State::executed : State::posted;
  if (waits_for_peer_) return State::posted;
  const Wait& wait = plan_.begins[number];
  if (wait.counter == counter_none || wait.counter == counter_gate) return State::active;
  return is_met(wait) ? State::executed : State::posted;
}

Status Offloaded::enable(uint32_t original) {
  if (original >= this->original_count() || !graph_.operations[beginning_of(original)].cpu_dependent) {
    return fail(Code::invalid, "operation ", original, " is not CPU-dependent");
  }
  const uint32_t number = beginning_of(original);
  if (!under_way_) return fail(Code::invalid, "the schedule is not under way: operations are enabled after its start");
  if (enabled_[number]) return {};
  enabled_[number] = true;
  if (waits_for_peer_) return {};
  endpoint_.spend_call_time();
  return interface_.ct_inc(counter_of(plan_.begins[number].counter), {1, 0});
}

Result<bool> Offloaded::disable(uint32_t original) {
  if (original >= this->original_count() || !graph_.operations[beginning_of(original)].cpu_dependent) {
    return fail(Code::invalid, "operation ", original, " is not CPU-dependent");
  }
  const uint32_t number = beginning_of(original);
  if (!under_way_ || !enabled_[number]) return true;
  if (waits_for_peer_) {
    enabled_[number] = false;
    return true;
  }
  const Wait& wait = plan_.begins[number];
  const Counter& counter = counters_[wait.counter];
  endpoint_.spend_call_time();
  SPL_ASSIGN(const uint64_t after, interface_.ct_take_back(counter.id));
  const uint64_t begins_at = counter.base + (starts_ - 1) * plan_.growth[wait.counter] + wait.value;
  if (after + 1 < begins_at) {
    enabled_[number] = false;
    return true;
  }
  SPL_TRY(interface_.ct_inc(counter.id, {1, 0}));
  return false;
}

// Takes entries back from their list. True if no message works on any of them any more.
bool Offloaded::unlink_receives() {
  bool have_all = true;
  for (nic::EntryId& entry : receives_) {
    if (!entry.exists()) continue;
    const Result<portals::Unlinked> unlinked = interface_.me_unlink(entry);
    if (unlinked && *unlinked == portals::Unlinked::in_use) {
      have_all = false;
    } else {
      entry = {};
    }
  }
  return have_all;
}

bool Offloaded::try_to_quiesce() {
  return unlink_receives() && !contiguous_descriptor_->in_use() &&
         std::ranges::none_of(descriptors_, [](const nic::DescriptorRef& one) { return one && one->in_use(); });
}

Status Offloaded::withdraw() {
  std::erase(endpoint_.waiting_schedules_, this);
  if (!under_way_ && !failure_ && plan_.is_certain) return {};
  // Operations that wait for a counter never begin now. Others end by themselves, or by the loss of their peer.
  for (const Counter& counter : counters_) {
    if (counter.id.exists()) std::ignore = interface_.ct_cancel(counter.id);
  }
  if (under_way_) failure_ = fail(Code::invalid, "the schedule has been withdrawn");
  under_way_ = false;
  return endpoint_.wait_for("a peer is reading or writing memory of the schedule, and has not ended",
                            [this] { return try_to_quiesce(); });
}

}  // namespace spinloom::collective
