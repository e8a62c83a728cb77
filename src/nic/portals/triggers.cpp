#include "nic/portals/triggers.hpp"

#include <algorithm>
#include <utility>

namespace spinloom::nic {

// Operations move data. The limit of an interface counts only these commands.
bool Triggers::is_operation(const CommandBody& body) {
  return std::holds_alternative<Put>(body) || std::holds_alternative<Get>(body) ||
         std::holds_alternative<Atomic>(body) || std::holds_alternative<ProcessPut>(body);
}

Status Triggers::alloc(const CounterAlloc& request) {
  SPL_ASSIGN(Counter * counter, counters_.create(request.counter));
  counter->triggered_max = request.triggered_max;
  counter->only_successes = request.only_successes;
  counter->valid_from = next_sequence_;
  return {};
}

uint64_t Triggers::trigger_value(const Counter& counter) {
  if (counter.only_successes) return counter.value.success;
  uint64_t sum = 0;
  return __builtin_add_overflow(counter.value.success, counter.value.failure, &sum) ? UINT64_MAX : sum;
}

Status Triggers::free(CounterId id) {
  SPL_ASSIGN(Counter * counter, counters_.get(id));
  forget_all(*counter);
  counters_.remove(id);
  return {};
}

Status Triggers::cancel(CounterId id) {
  SPL_ASSIGN(Counter * counter, counters_.get(id));
  forget_all(*counter);
  return {};
}

// Forgets the commands that wait for the counter; fired persistent commands will not come back.
void Triggers::forget_all(Counter& counter) {
  const auto forget = [&](uint32_t slot) {
    abandon(commands_[slot].body);
    commands_.give_back(slot);
  };
  for (const Waiting& waiting : counter.heap) forget(waiting.slot);
  for (const uint32_t slot : counter.resting) forget(slot);
  counter.heap.clear();
  counter.resting.clear();
  counter.operations_waiting = 0;
  counter.fired_persistent = 0;
  counter.valid_from = next_sequence_;
}

Status Triggers::auto_reset(const CounterAutoReset& request) {
  SPL_ASSIGN(Counter * counter, counters_.get(request.counter));
  if (!counter->heap.empty() || !counter->resting.empty() || counter->fired_persistent > 0) {
    return fail(Code::invalid, "counter ", request.counter, ": commands wait for it already");
  }
  counter->resets_at = request.threshold;
  return {};
}

Status Triggers::check(CounterId id) const {
  SPL_ASSIGN([[maybe_unused]] const Counter* counter, counters_.get(id));
  return {};
}

Status Triggers::may_wait(const Command& request) const {
  const Trigger& trigger = *request.trigger;
  SPL_ASSIGN(const Counter* counter, counters_.get(trigger.counter));
  if (std::holds_alternative<MemoryAlloc>(request.body) || std::holds_alternative<TelemetryRead>(request.body) ||
      std::holds_alternative<RefusalsRead>(request.body)) {
    return fail(Code::invalid, "what is asked for by its answer (NIC memory, telemetry) cannot wait for a counter");
  }
  if (counter->heap.size() >= commands_max_) {
    return fail(Code::exhausted, "counter ", trigger.counter, " has ", counter->heap.size(),
                " commands waiting, the limit (triggered_commands)");
  }
  if (is_operation(request.body) && counter->operations_waiting >= counter->triggered_max) {
    return fail(Code::exhausted, "counter ", trigger.counter, " has ", counter->operations_waiting,
                " operations waiting, as many as its interface allows (max_triggered_ops)");
  }
  if (counter->resets_at > 0 && trigger.threshold > counter->resets_at) {
    return fail(Code::invalid, "counter ", trigger.counter, " resets itself at ", counter->resets_at,
                " and never reaches ", trigger.threshold);
  }
  return {};
}

void Triggers::wait(const Command& request) {
  const uint32_t slot = commands_.take(request);
  commands_[slot].trigger->round = counters_.find(request.trigger->counter)->round;
  arm(slot);
}

void Triggers::arm(uint32_t slot) {
  Command& command = commands_[slot];
  SPL_ASSERT(command.trigger.has_value(), "command ", slot);
  Trigger& trigger = *command.trigger;
  SPL_ASSERT(counters_.find(trigger.counter) != nullptr, "counter ", trigger.counter);
  Counter& counter = *counters_.find(trigger.counter);
  trigger.sequence = next_sequence_++;
  if (is_operation(command.body)) ++counter.operations_waiting;
  const bool by_round = trigger.every > 0 && counter.resets_at > 0;
  if (by_round && trigger.round > counter.round) return counter.resting.push_back(slot);
  const bool is_late = by_round && trigger.round < counter.round;  // the round of this command is over
  counter.heap.push_back(Waiting{is_late ? 0 : trigger.threshold, trigger.sequence, slot});
  std::push_heap(counter.heap.begin(), counter.heap.end(), LaterFirst{});
  fire_reached(counter);
}

void Triggers::count_leaving(Counter& counter, uint32_t slot) const {
  if (!is_operation(commands_[slot].body)) return;
  SPL_ASSERT(counter.operations_waiting > 0, "command ", slot);
  --counter.operations_waiting;
}

void Triggers::fire_reached(Counter& counter) {
  const uint64_t now = trigger_value(counter);
  if (counter.heap.empty() || counter.heap.front().threshold > now) return;
  std::vector<Waiting> reached;
  while (!counter.heap.empty() && counter.heap.front().threshold <= now) {
    const uint32_t slot = counter.heap.front().slot;
    count_leaving(counter, slot);
    if (commands_[slot].trigger->every > 0) ++counter.fired_persistent;
    std::pop_heap(counter.heap.begin(), counter.heap.end(), LaterFirst{});
    reached.push_back(counter.heap.back());
    counter.heap.pop_back();
  }
  std::sort(reached.begin(), reached.end(), [](const Waiting& a, const Waiting& b) { return a.sequence < b.sequence; });
  for (const Waiting& waiting : reached) fired_.push(waiting.slot);
}

// Fires the commands whose threshold the new value reaches, and begins a new round if the counter resets itself.
void Triggers::fire_and_reset(Counter& counter) {
  fire_reached(counter);
  if (counter.resets_at == 0 || trigger_value(counter) < counter.resets_at) return;
  counter.value = {};
  ++counter.round;
  for (const uint32_t slot : std::exchange(counter.resting, {})) {
    count_leaving(counter, slot);
    arm(slot);
  }
}

void Triggers::count(CounterId id, CounterValue by, Actions& out) {
  Counter* const counter = counters_.find(id);
  if (counter == nullptr) return;
  // Reads each field in the width in which it was written: a wider load would wait for the store.
  const CounterValue now{counter->value.success + by.success, counter->value.failure + by.failure};
  counter->value = now;
  fire_and_reset(*counter);
  out.add<PostCounter>(id, counter->resets_at == 0 ? now : counter->value);
}

void Triggers::set(CounterId id, CounterValue to, Actions& out) {
  SPL_ASSERT(counters_.find(id) != nullptr, "counter ", id);
  Counter& counter = *counters_.find(id);
  counter.value = to;
  fire_and_reset(counter);
  out.add<PostCounter>(id, counter.value);
}

void Triggers::finish_run(uint32_t slot) {
  Command& request = commands_[slot];
  SPL_ASSERT(request.trigger.has_value(), "command ", slot);
  Trigger& trigger = *request.trigger;
  Counter* counter = trigger.every > 0 ? counters_.find(trigger.counter) : nullptr;
  if (counter != nullptr && trigger.sequence < counter->valid_from) counter = nullptr;  // forgotten before it ran
  SPL_ASSERT(counter == nullptr || counter->fired_persistent > 0, "command ", slot);
  if (counter != nullptr) --counter->fired_persistent;
  if (counter != nullptr && counter->resets_at > 0) {
    ++trigger.round;
    return arm(slot);
  }
  if (counter == nullptr || __builtin_add_overflow(trigger.threshold, trigger.every, &trigger.threshold)) {
    if (trigger.every > 0) abandon(request.body);
    commands_.give_back(slot);
    return;
  }
  arm(slot);
}

}  // namespace spinloom::nic
