// The calls of a rank, and operations that a counter starts.
#include <algorithm>
#include <utility>

#include "portals/model/step.hpp"

namespace spinloom::model {
namespace {

bool reached(Count value, uint16_t threshold) { return value.success + value.failure >= threshold; }

// True if the arguments of a triggered operation are.
bool is_valid(const Operation& operation) {
  const Movement& moved = operation.movement;
  return !moves_data(operation.kind) || moved.ack != Ack::full || moved.descriptor.has_queue;
}

}  // namespace

void Step::post(uint16_t rank, bool departures, const Event& event) {
  if (!departures && event.kind != EventKind::pt_disabled) report_disabled_between(rank);
  Queue& queue = process(rank).queues[departures ? 1 : 0];
  const bool must_have_room = !departures && tells_of_message(event.kind);
  if (must_have_room && messages_in_queue(rank) >= machine_.setup(rank).arrivals_max) agrees_ = false;
  ++queue.posted;
  if (!machine_.follows(rank)) return queue.events.push_back(event);
  const std::vector<Event>& seen = machine_.followed_->events[rank][departures ? 1 : 0];
  agrees_ = agrees_ && queue.posted <= seen.size() && seen[queue.posted - 1u] == event;
}

// An append or a search posts an event for each header that it finds. The queue may get full in between, and be
// reported, which is looked for in the observed outcome only.
void Step::report_disabled_between(uint16_t rank) {
  if (!machine_.follows(rank)) return;
  const std::vector<Event>& seen = machine_.followed_->events[rank][0];
  const uint16_t posted = process(rank).queues[0].posted;
  if (posted >= seen.size() || seen[posted].kind != EventKind::pt_disabled) return;
  if (may_find_queue_full(rank)) find_queue_full(rank);
  if (may_report_disabled(rank)) report_disabled(rank);
}

void Step::return_from(uint16_t rank, const Returned& returned) {
  Process& process = state_.processes[rank];
  const uint16_t place = process.next++;
  if (rank == machine_.program_.killed) return;
  if (!machine_.follows(rank)) return process.returned.push_back(returned);
  const std::vector<Returned>& seen = machine_.followed_->outcome->ranks[rank].returned;
  agrees_ = agrees_ && place < seen.size() && seen[place] == returned;
}

void Step::add_to(uint16_t rank, uint8_t counter, Count count) {
  if (counter == none) return;
  Count& value = process(rank).counters[counter].value;
  value.success = static_cast<uint16_t>(value.success + count.success);
  value.failure = static_cast<uint16_t>(value.failure + count.failure);
  fire(rank, counter);
}

void Step::set(uint16_t rank, uint8_t counter, Count count) {
  process(rank).counters[counter].value = count;
  fire(rank, counter);
}

// Operations start in the order in which their thresholds are reached; those released together in that of their calls.
void Step::fire(uint16_t rank, uint8_t counter) {
  Counter& fired = process(rank).counters[counter];
  std::erase_if(fired.waiting, [&](uint16_t place) {
    if (!reached(fired.value, operation({rank, place}).trigger->threshold)) return false;
    process(rank).fired.push_back(place);
    return true;
  });
}

bool Step::may_call(uint16_t rank) const {
  const Process& caller = process(rank);
  const std::vector<Operation>& operations = machine_.program_.ranks[rank].operations;
  if (!caller.is_alive || caller.next >= operations.size()) return false;
  const Operation& operation = operations[caller.next];
  if (operation.trigger) return true;
  switch (operation.kind) {
    case OperationKind::ct_wait: {
      const Count value = caller.counters[operation.counter].value;
      return value.success >= operation.number || value.failure > 0;
    }
    case OperationKind::eq_wait: {
      const Queue& queue = caller.queues[operation.departures ? 1 : 0];
      return queue.taken < queue.posted;
    }
    case OperationKind::bundle_end: return caller.bundles != 1 || caller.deferred.empty();
    case OperationKind::settle: return false;
    // Disabling returns when no message is being processed and the events of earlier ones are posted.
    case OperationKind::pt_disable: return !caller.is_disabling || !is_under_way(rank);
    default: return true;
  }
}

uint16_t Step::ways_to_call(uint16_t rank) const {
  const Operation& operation = machine_.program_.ranks[rank].operations[process(rank).next];
  if (operation.trigger) {
    const uint16_t ways = ways_to_wait(rank, process(rank).next);
    return process(rank).bundles > 0 ? ways + 1u : ways;
  }
  switch (operation.kind) {
    case OperationKind::unlink: return 2;
    case OperationKind::append: return machine_.rules_.owes_nothing ? 1 : 2;
    case OperationKind::search: return 4;
    default: return 1;
  }
}

uint16_t Step::ways_to_wait(uint16_t rank, uint16_t place) const {
  const uint16_t ways = machine_.rules_.counts_wait_freely ? 1 : 2;
  const bool is_open = operation({rank, place}).kind == OperationKind::unlink && !machine_.rules_.unlinks_always_wait;
  return is_open ? 2 * ways : ways;
}

void Step::call(uint16_t rank, uint16_t way) {
  Process& caller = process(rank);
  const uint16_t place = caller.next;
  const Operation& called = operation({rank, place});
  if (called.trigger && way == ways_to_wait(rank, place)) return defer(rank, place);
  if (called.trigger) {
    agrees_ = agrees_ && caller.deferred.empty();  // the order stays
    return return_from(rank, {wait_for_trigger(rank, place, way), {}, {}});
  }
  switch (called.kind) {
    case OperationKind::search: return return_from(rank, {search(rank, place, way), {}, {}});
    case OperationKind::ct_get:
    case OperationKind::ct_wait: return return_from(rank, {Code::ok, caller.counters[called.counter].value, {}});
    case OperationKind::pt_disable:
      if (!caller.is_disabling) {
        caller.is_enabled = false;
        caller.is_disabling = true;
        return;
      }
      caller.is_disabling = false;
      return return_from(rank, {});
    case OperationKind::eq_get:
    case OperationKind::eq_wait: {
      Queue& queue = caller.queues[called.departures ? 1 : 0];
      if (queue.taken == queue.posted) return return_from(rank, {Code::empty, {}, {}});
      const uint16_t taken = queue.taken++;
      const std::vector<Event>& events =
          machine_.follows(rank) ? machine_.followed_->events[rank][called.departures ? 1 : 0] : queue.events;
      return return_from(rank, {Code::ok, {}, events[taken]});
    }
    case OperationKind::bundle_begin: ++caller.bundles; return return_from(rank, {});
    case OperationKind::bundle_end: return return_from(rank, {end_bundle(rank), {}, {}});
    default: return return_from(rank, {perform(rank, place, way), {}, {}});
  }
}

void Step::pass_settle() {
  for (uint16_t rank = 0; rank < state_.processes.size(); ++rank) {
    if (process(rank).next < machine_.program_.ranks[rank].operations.size()) return_from(rank, {});
  }
}

// A bundle may keep back the operations that are called in it; its end starts them all.
void Step::defer(uint16_t rank, uint16_t place) {
  if (!is_valid(operation({rank, place}))) return return_from(rank, {Code::invalid, {}, {}});
  process(rank).deferred.push_back(place);
  return_from(rank, {});
}

void Step::end_deferral(uint16_t rank, uint16_t way) {
  Process& caller = process(rank);
  const uint16_t place = caller.deferred.front();
  caller.deferred.erase(caller.deferred.begin());
  const Code code = wait_for_trigger(rank, place, way);
  if (caller.bundle_result == Code::ok) caller.bundle_result = code;
}

Code Step::end_bundle(uint16_t rank) {
  Process& caller = process(rank);
  if (caller.bundles == 0) return Code::invalid;
  if (--caller.bundles > 0) return Code::ok;
  return std::exchange(caller.bundle_result, Code::ok);
}

uint16_t Step::ways_to_start_fired(uint16_t rank) const {
  const bool appends = operation({rank, process(rank).fired.front()}).kind == OperationKind::append;
  return appends && !machine_.rules_.owes_nothing ? 2 : 1;
}

void Step::start_fired(uint16_t rank, uint16_t way) {
  Process& starter = process(rank);
  const uint16_t place = starter.fired.front();
  starter.fired.erase(starter.fired.begin());
  const Operation& fired = operation({rank, place});
  const Code code = fired.kind == OperationKind::unlink ? try_to_unlink(rank, fired.number) : perform(rank, place, way);
  (void)code;  // nobody hears of it
}

Code Step::perform(uint16_t rank, uint16_t place, uint16_t way) {
  const Operation& performed = operation({rank, place});
  switch (performed.kind) {
    case OperationKind::put:
    case OperationKind::get:
    case OperationKind::atomic:
    case OperationKind::fetch_atomic: return issue(rank, place);
    case OperationKind::append: return append(rank, place, way);
    case OperationKind::unlink: return unlink(rank, place, way);
    case OperationKind::ct_inc: add_to(rank, performed.counter, {performed.success, performed.failure}); break;
    case OperationKind::ct_set: set(rank, performed.counter, {performed.success, performed.failure}); break;
    case OperationKind::ct_cancel: cancel(rank, performed.counter); break;
    case OperationKind::pt_enable: process(rank).is_enabled = true; break;
    default: break;
  }
  return Code::ok;
}

void Step::cancel(uint16_t rank, uint8_t counter) {
  std::vector<uint16_t>& cancelled = process(rank).cancelled;
  for (const uint16_t waiting : std::exchange(process(rank).counters[counter].waiting, {})) {
    if (operation({rank, waiting}).kind == OperationKind::append) cancelled.push_back(waiting);
  }
  std::sort(cancelled.begin(), cancelled.end());
}

// Portals 4 leaves open whether operations that move no data are limited, too, and what the triggered unlinking of an
// entry that is not linked returns (`way`).
Code Step::wait_for_trigger(uint16_t rank, uint16_t place, uint16_t way) {
  const Operation& waiting = operation({rank, place});
  const std::vector<uint16_t>& cancelled = process(rank).cancelled;
  const bool is_for_cancelled =
      waiting.kind == OperationKind::unlink && std::binary_search(cancelled.begin(), cancelled.end(), waiting.number);
  if (machine_.rules_.unlinks_always_wait && is_for_cancelled) return Code::invalid;
  Counter& counter = process(rank).counters[waiting.trigger->counter];
  const uint16_t most = machine_.setup(rank).triggered_max;
  const auto moving = std::count_if(counter.waiting.begin(), counter.waiting.end(),
                                    [&](uint16_t other) { return moves_data(operation({rank, other}).kind); });
  const bool is_full_of_moving = moves_data(waiting.kind) && moving >= most;
  const bool is_full = counter.waiting.size() >= most;
  const uint16_t ways = machine_.rules_.counts_wait_freely ? 1 : 2;
  const bool limits_all = way % ways == 1;
  if (limits_all && is_full == is_full_of_moving) agrees_ = false;
  if (way >= ways) {
    agrees_ = agrees_ && !is_linked(rank, waiting.number);
    return Code::invalid;
  }
  if (limits_all ? is_full : is_full_of_moving) return Code::no_space;
  if (!is_valid(waiting)) return Code::invalid;
  counter.waiting.push_back(place);
  fire(rank, waiting.trigger->counter);
  return Code::ok;
}

}  // namespace spinloom::model
