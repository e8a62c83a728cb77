// Counters and the commands that wait for them.
//
// A counter keeps its waiting commands in a heap by threshold. When its value grows, those it reaches move to one
// queue of fired commands, in the order in which they were given; each on_continue runs one. So a chain of commands
// that count each other up for ever never makes a call run for ever.
//
// A counter that resets itself (Di Girolamo et al., "Exploiting Offload Enabled Network Interfaces", section
// II.C.5) counts its rounds, and a persistent command those in which it has run: so one that runs late misses none, and
// one that has run rests until the next.
#include <algorithm>
#include <utility>

#include "nic/nic_impl.hpp"

namespace spinloom::nic {
namespace {

struct LaterFirst {
  template <class Waiting>
  bool operator()(const Waiting& a, const Waiting& b) const {
    return a.threshold != b.threshold ? a.threshold > b.threshold : a.sequence > b.sequence;
  }
};

uint64_t sum_of(const CounterValue& value) {
  uint64_t sum = 0;
  return __builtin_add_overflow(value.success, value.failure, &sum) ? UINT64_MAX : sum;
}

}  // namespace

Status Nic::Impl::wait_for_counter(const Command& given) {
  SPL_ASSIGN(CounterState * counter, counters.get(given.trigger->counter));
  if (std::holds_alternative<MemoryAlloc>(given.body) || std::holds_alternative<TelemetryRead>(given.body) ||
      std::holds_alternative<RefusalsRead>(given.body)) {
    return fail(Code::invalid, "what is asked for by its answer (NIC memory, telemetry) cannot wait for a counter");
  }
  if (counter->heap.size() >= config.triggered_commands) {
    return fail(Code::exhausted, "counter ", given.trigger->counter, " has ", counter->heap.size(),
                " commands waiting, the limit (triggered_commands)");
  }
  if (is_operation(given.body) && counter->operations_waiting >= counter->triggered_max) {
    return fail(Code::exhausted, "counter ", given.trigger->counter, " has ", counter->operations_waiting,
                " operations waiting, as many as its interface allows (max_triggered_ops)");
  }
  if (counter->resets_at > 0 && given.trigger->threshold > counter->resets_at) {
    return fail(Code::invalid, "counter ", given.trigger->counter, " resets itself at ", counter->resets_at,
                " and never reaches ", given.trigger->threshold);
  }
  if (const Put* put = std::get_if<Put>(&given.body)) SPL_TRY(check_put(*put));
  if (const ProcessPut* put = std::get_if<ProcessPut>(&given.body)) SPL_TRY(check_process_put(*put));
  if (const Get* get = std::get_if<Get>(&given.body)) SPL_TRY(check_get(*get));
  if (const Atomic* atomic = std::get_if<Atomic>(&given.body)) SPL_TRY(check_atomic(*atomic));
  const uint32_t slot = waiting_commands.take();
  waiting_commands[slot] = given;
  waiting_commands[slot].trigger->round = counter->round;
  arm(slot);
  return {};
}

void Nic::Impl::arm(uint32_t slot) {
  SPL_ASSERT(waiting_commands[slot].trigger.has_value(), "command ", slot);
  Trigger& trigger = *waiting_commands[slot].trigger;
  SPL_ASSERT(counters.find(trigger.counter) != nullptr, "counter ", trigger.counter);
  CounterState& counter = *counters.find(trigger.counter);
  trigger.sequence = next_trigger_sequence++;
  if (is_operation(waiting_commands[slot].body)) ++counter.operations_waiting;
  const bool by_round = trigger.every > 0 && counter.resets_at > 0;
  if (by_round && trigger.round > counter.round) return counter.resting.push_back(slot);
  const bool is_late = by_round && trigger.round < counter.round;  // that round has been here
  counter.heap.push_back(Waiting{is_late ? 0 : trigger.threshold, trigger.sequence, slot});
  std::push_heap(counter.heap.begin(), counter.heap.end(), LaterFirst{});
  release_triggered(counter);
}

// What moves data; the limit of an interface is one of these.
bool Nic::Impl::is_operation(const CommandBody& body) {
  return std::holds_alternative<Put>(body) || std::holds_alternative<Get>(body) ||
         std::holds_alternative<Atomic>(body) || std::holds_alternative<ProcessPut>(body);
}

void Nic::Impl::release_triggered(CounterState& counter) {
  const uint64_t now = sum_of(counter.value);
  if (counter.heap.empty() || counter.heap.front().threshold > now) return;
  std::vector<Waiting> reached;
  while (!counter.heap.empty() && counter.heap.front().threshold <= now) {
    const Command& waiting = waiting_commands[counter.heap.front().slot];
    const bool counted = is_operation(waiting.body);
    SPL_ASSERT(!counted || counter.operations_waiting > 0, "command ", counter.heap.front().slot);
    if (counted) --counter.operations_waiting;
    if (waiting.trigger->every > 0) ++counter.coming_back;
    std::pop_heap(counter.heap.begin(), counter.heap.end(), LaterFirst{});
    reached.push_back(counter.heap.back());
    counter.heap.pop_back();
  }
  std::sort(reached.begin(), reached.end(), [](const Waiting& a, const Waiting& b) { return a.sequence < b.sequence; });
  for (const Waiting& waiting : reached) fired.push(waiting.slot);
}

// What its new value starts, and its end where it resets itself.
void Nic::Impl::changed(CounterState& counter) {
  release_triggered(counter);
  if (counter.resets_at == 0 || sum_of(counter.value) < counter.resets_at) return;
  counter.value = {};
  ++counter.round;
  for (const uint32_t slot : std::exchange(counter.resting, {})) {
    const bool counted = is_operation(waiting_commands[slot].body);
    SPL_ASSERT(!counted || counter.operations_waiting > 0, "command ", slot);
    if (counted) --counter.operations_waiting;
    arm(slot);
  }
}

Status Nic::Impl::auto_reset(const CounterAutoReset& body) {
  SPL_ASSIGN(CounterState * counter, counters.get(body.counter));
  if (!counter->heap.empty() || !counter->resting.empty() || counter->coming_back > 0) {
    return fail(Code::invalid, "counter ", body.counter, ": commands wait for it already");
  }
  counter->resets_at = body.threshold;
  return {};
}

void Nic::Impl::count(CounterId id, CounterValue by, Actions& out) {
  CounterState* counter = counters.find(id);
  if (counter == nullptr) return;  // optional, or freed meanwhile
  // Read in the width that it was written in: a wider load would wait for it.
  const CounterValue now{counter->value.success + by.success, counter->value.failure + by.failure};
  counter->value = now;
  changed(*counter);
  out.add<PostCounter>(id, counter->resets_at == 0 ? now : counter->value);
}

void Nic::Impl::set_counter(CounterId id, CounterValue to, Actions& out) {
  SPL_ASSERT(counters.find(id) != nullptr, "counter ", id);
  CounterState& counter = *counters.find(id);
  counter.value = to;
  changed(counter);
  out.add<PostCounter>(id, counter.value);
}

// One fired command.
void Nic::Impl::run_fired(Actions& out) {
  if (fired.empty()) return;
  const uint32_t slot = fired.pop();
  Command& given = waiting_commands[slot];
  SPL_ASSERT(given.trigger.has_value(), "command ", slot);
  if (given.trigger->every > 0) for_each_descriptor(given.body, [](Descriptor& descriptor) { descriptor.begin(); });
  const Result<uint64_t> result = execute(given.body, out);
  if (!result) {
    note_failure(result.error());
    forget(given.body);
  }
  Trigger& trigger = *given.trigger;
  CounterState* counter = trigger.every > 0 ? counters.find(trigger.counter) : nullptr;
  if (counter != nullptr && trigger.sequence < counter->begun) counter = nullptr;  // forgotten before it could run
  SPL_ASSERT(counter == nullptr || counter->coming_back > 0, "command ", slot);
  if (counter != nullptr) --counter->coming_back;
  if (counter != nullptr && counter->resets_at > 0) {
    ++trigger.round;
    return arm(slot);
  }
  if (counter == nullptr || __builtin_add_overflow(trigger.threshold, trigger.every, &trigger.threshold)) {
    if (trigger.every > 0) forget(given.body);
    waiting_commands.give_back(slot);
    return;
  }
  arm(slot);
}

}  // namespace spinloom::nic
