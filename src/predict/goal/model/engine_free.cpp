// Engine: events that wait for a CPU, and operations that wait for other operations.
#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "predict/goal/model/engine.hpp"

namespace spinloom::goal {

using schedule::Awaits;
using schedule::Edge;
using schedule::Join;

void Engine::push(uint64_t at_ps, uint32_t event, EventKind kind) {
  Event& pushed = queue_[event];
  pushed.kind = kind;
  pushed.number = uint64_t{1} << 63 | uint64_t{static_cast<uint8_t>(kind)} << EventQueue::kind_shift | next_number_++;
  queue_.push(clamped(at_ps), event);
}

void Engine::push_operation(uint64_t at_ps, uint32_t rank, uint32_t operation) {
  const uint32_t shape = schedule_.program(rank).operation(operation).shape;
  if (record_ != nullptr) [[unlikely]]
    record_->of(rank, operation).ready_ps = at_ps;
  const uint32_t event = queue_.add();
  Event& begun = queue_[event];
  begun.rank = begun.source = rank;
  begun.operation = operation;
  begun.shape = shape;
  begun.is_leader = false;
  push(at_ps, event, costs_[shape].begin_event);
}

void Engine::wait(uint32_t event) {
  Event& waiting = queue_[event];
  SPL_ASSERT(!waiting.is_leader, "the CPU of rank ", waiting.rank, " is busy for the first that waited for it");
  Cpu& cpu = cpu_of(waiting.rank, costs_of(waiting.rank, waiting.operation));
  waiting.number = next_wait_number_++;
  if (!cpu.has_leader) {
    cpu.has_leader = waiting.is_leader = true;
    queue_.push(cpu.free_ps, event);
    return;
  }
  waiting.next = none;
  (cpu.last_waiting == none ? cpu.first_waiting : queue_[cpu.last_waiting].next) = event;
  cpu.last_waiting = event;
}

// The next event that waits becomes the leader, if a leader occupies the CPU.
void Engine::occupy(Cpu& cpu, uint64_t until_ps, bool is_leader) {
  cpu.free_ps = clamped(until_ps);
  if (!is_leader) return;
  cpu.has_leader = cpu.first_waiting != none;
  if (!cpu.has_leader) return;
  const uint32_t leader = cpu.first_waiting;
  cpu.first_waiting = queue_[leader].next;
  if (cpu.first_waiting == none) cpu.last_waiting = none;
  queue_[leader].is_leader = true;
  queue_.push(cpu.free_ps, leader);
}

void Engine::begin(uint64_t now, uint32_t rank, uint32_t operation) {
  ++event_count_;
  --not_begun_;
  --ranks_[rank].not_begun;
  if (begun_ != nullptr) [[unlikely]] {
    if (const auto found = begun_->find(rank); found != begun_->end()) found->second[operation] = true;
  }
  release(now, rank, operation, Awaits::start);
}

void Engine::end(uint64_t at_ps, uint32_t rank, uint32_t operation) {
  uint64_t& finish_ps = ranks_[rank].finish_ps;
  finish_ps = std::max(finish_ps, clamped(at_ps));
  if (record_ != nullptr) [[unlikely]]
    record_->of(rank, operation).end_ps = at_ps;
  release(at_ps, rank, operation, Awaits::end);
}

void Engine::release(uint64_t at_ps, uint32_t rank, uint32_t operation, Awaits awaits) {
  schedule_.program(rank).for_each_edge(operation, [&](const Edge& edge) {
    if (edge.is(awaits, Join::all)) {
      count_down(at_ps, rank, edge.to());
    } else if (edge.is(awaits, Join::first)) [[unlikely]] {
      announce(at_ps, rank, operation, edge);
    }
  });
  if (ranks_[rank].not_begun == 0 && ranks_[rank].counters != none) drop_counters(rank);
}

void Engine::drop_counters(uint32_t rank) {
  const uint32_t dropped = std::exchange(ranks_[rank].counters, none);
  const Plan& plan = plans_[schedule_.number_of_program(rank)];
  if (plan.is_windowed) {
    windows_.close(dropped);
  } else {
    free_counters_[plan.dependency_counts.size()].push_back(dropped);
  }
}

void Engine::count_down(uint64_t at_ps, uint32_t rank, uint32_t operation) {
  Counter* const counter = counter_of(rank, operation);
  if (counter == nullptr) {
    push_operation(at_ps, rank, operation);
    return;
  }
  counter->ready_ps = std::max(counter->ready_ps, at_ps);
  if (--counter->pending == 0) push_operation(counter->ready_ps, rank, operation);
}

Counter* Engine::counter_of(uint32_t rank, uint32_t operation) {
  Rank& state = ranks_[rank];
  const Plan& plan = plans_[schedule_.number_of_program(rank)];
  if (plan.is_windowed) {
    const schedule::Program& program = schedule_.program(rank);
    if (state.counters == none) state.counters = windows_.open(program);
    return windows_.counter_of(state.counters, program, operation);
  }
  const uint32_t number = plan.counter_of.empty() ? none : plan.counter_of[operation];
  if (number == none) return nullptr;
  if (state.counters == none) make_counters(state, plan);
  return &counters_[state.counters + number];
}

void Engine::make_counters(Rank& state, const Plan& plan) {
  std::vector<uint32_t>& unused = free_counters_[plan.dependency_counts.size()];
  if (unused.empty()) {
    unused.push_back(static_cast<uint32_t>(counters_.size()));
    counters_.resize(counters_.size() + plan.dependency_counts.size());
  }
  state.counters = unused.back();
  unused.pop_back();
  for (size_t counter = 0; counter < plan.dependency_counts.size(); ++counter) {
    counters_[state.counters + counter] = {0, plan.dependency_counts[counter]};
  }
}

void Engine::announce(uint64_t at_ps, uint32_t rank, uint32_t operation, const Edge& edge) {
  const uint32_t event = queue_.add();
  Event& announced = queue_[event];
  announced.rank = rank;
  announced.operation = edge.to();
  announced.source = operation;
  announced.is_leader = false;
  push(at_ps, event, EventKind::first_came);
}

// If all operations of the rank have begun, so has this one, and its counter is gone.
void Engine::first_came(uint64_t now, uint32_t event) {
  const Event came = queue_[event];
  queue_.release(event);
  if (ranks_[came.rank].not_begun == 0) return;
  Counter* const counter = counter_of(came.rank, came.operation);
  if (counter == nullptr || std::exchange(counter->is_any_met, true)) return;
  if (record_ != nullptr) [[unlikely]]
    record_->of(came.rank, came.operation).first_came = came.source;
  count_down(now, came.rank, came.operation);
}

std::vector<uint32_t> Engine::stalled_ranks() const {
  std::vector<uint32_t> stalled;
  for (uint32_t rank = 0; rank < ranks_.size() && stalled.size() < stalled_ranks_max; ++rank) {
    const Rank& state = ranks_[rank];
    if (state.not_begun + state.posted.size + state.arrived.size > 0 || arrivals_.first_that_waits(rank).has_value()) {
      stalled.push_back(rank);
    }
  }
  return stalled;
}

Error Engine::stall() const {
  Stall stall{{}, event_count_, unmatched_, not_begun_, {}};
  for (const uint32_t rank : stalled_ranks()) {
    const Rank& state = ranks_[rank];
    stall.ranks.push_back({rank, matching_.first_or_none(state.posted), matching_.first_or_none(state.arrived),
                           arrivals_.first_that_waits(rank), state.not_begun > 0});
  }
  return stall_error(schedule_, *begun_, stall);
}

}  // namespace spinloom::goal
