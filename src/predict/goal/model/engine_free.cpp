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
  pushed.number = uint64_t{1} << 63 | uint64_t{static_cast<uint8_t>(kind)} << EventQueue::kind_shift | numbers_++;
  queue_.push(checked(at_ps), event);
}

void Engine::push_operation(uint64_t at_ps, uint32_t rank, uint32_t operation) {
  const uint32_t shape = schedule_.program(rank).operation(operation).shape;
  if (record_ != nullptr) [[unlikely]]
    record_->of(rank, operation).free_ps = at_ps;
  const uint32_t event = queue_.add();
  Event& made = queue_[event];
  made.rank = made.source = rank;
  made.operation = operation;
  made.shape = shape;
  made.leads = false;
  push(at_ps, event, costs_[shape].event);
}

void Engine::wait(uint32_t event) {
  Event& waiting = queue_[event];
  SPL_ASSERT(!waiting.leads, "the CPU of rank ", waiting.rank, " is busy for the first that waited for it");
  Cpu& cpu = cpu_of(waiting.rank, costs_of(waiting.rank, waiting.operation));
  waiting.number = waits_++;
  if (!cpu.is_led) {
    cpu.is_led = waiting.leads = true;
    queue_.push(cpu.free_ps, event);
    return;
  }
  waiting.next = none;
  (cpu.last == none ? cpu.first : queue_[cpu.last].next) = event;
  cpu.last = event;
}

// The next event that waits becomes the leader, if a leader occupies the CPU.
void Engine::occupy(Cpu& cpu, uint64_t until_ps, bool leads) {
  cpu.free_ps = checked(until_ps);
  if (!leads) return;
  cpu.is_led = cpu.first != none;
  if (!cpu.is_led) return;
  const uint32_t leader = cpu.first;
  cpu.first = queue_[leader].next;
  if (cpu.first == none) cpu.last = none;
  queue_[leader].leads = true;
  queue_.push(cpu.free_ps, leader);
}

void Engine::begin(uint64_t now, uint32_t rank, uint32_t operation) {
  ++events_;
  --left_;
  --ranks_[rank].left;
  if (begun_ != nullptr) [[unlikely]] {
    if (const auto found = begun_->find(rank); found != begun_->end()) found->second[operation] = true;
  }
  release(now, rank, operation, Awaits::start);
}

void Engine::end(uint64_t at_ps, uint32_t rank, uint32_t operation) {
  uint64_t& finish_ps = ranks_[rank].finish_ps;
  finish_ps = std::max(finish_ps, checked(at_ps));
  if (record_ != nullptr) [[unlikely]]
    record_->of(rank, operation).end_ps = at_ps;
  release(at_ps, rank, operation, Awaits::end);
}

void Engine::release(uint64_t at_ps, uint32_t rank, uint32_t operation, Awaits awaits) {
  schedule_.program(rank).each_edge(operation, [&](const Edge& edge) {
    if (edge.is(awaits, Join::all)) {
      count_down(at_ps, rank, edge.to());
    } else if (edge.is(awaits, Join::first)) [[unlikely]] {
      announce(at_ps, rank, operation, edge);
    }
  });
  if (ranks_[rank].left == 0 && ranks_[rank].counters != none) drop_counters(rank);
}

void Engine::drop_counters(uint32_t rank) {
  const uint32_t dropped = std::exchange(ranks_[rank].counters, none);
  const Plan& plan = plans_[schedule_.number_of_program(rank)];
  if (plan.is_windowed) {
    windows_.close(dropped);
  } else {
    free_counters_[plan.counters.size()].push_back(dropped);
  }
}

void Engine::count_down(uint64_t at_ps, uint32_t rank, uint32_t operation) {
  Counter* const counter = counter_of(rank, operation);
  if (counter == nullptr) {
    push_operation(at_ps, rank, operation);
    return;
  }
  counter->ready_ps = std::max(counter->ready_ps, at_ps);
  if (--counter->left == 0) push_operation(counter->ready_ps, rank, operation);
}

Counter* Engine::counter_of(uint32_t rank, uint32_t operation) {
  Rank& state = ranks_[rank];
  const Plan& plan = plans_[schedule_.number_of_program(rank)];
  if (plan.is_windowed) {
    const schedule::Program& program = schedule_.program(rank);
    if (state.counters == none) state.counters = windows_.open(program);
    return windows_.of(state.counters, program, operation);
  }
  const uint32_t number = plan.counter_of.empty() ? none : plan.counter_of[operation];
  if (number == none) return nullptr;
  if (state.counters == none) make_counters(state, plan);
  return &counters_[state.counters + number];
}

void Engine::make_counters(Rank& state, const Plan& plan) {
  std::vector<uint32_t>& unused = free_counters_[plan.counters.size()];
  if (unused.empty()) {
    unused.push_back(static_cast<uint32_t>(counters_.size()));
    counters_.resize(counters_.size() + plan.counters.size());
  }
  state.counters = unused.back();
  unused.pop_back();
  for (size_t one = 0; one < plan.counters.size(); ++one) {
    counters_[state.counters + one] = {0, plan.counters[one]};
  }
}

void Engine::announce(uint64_t at_ps, uint32_t rank, uint32_t operation, const Edge& edge) {
  const uint32_t event = queue_.add();
  Event& made = queue_[event];
  made.rank = rank;
  made.operation = edge.to();
  made.source = operation;
  made.leads = false;
  push(at_ps, event, EventKind::first_came);
}

// If all operations of the rank have begun, so has this one, and its counter is gone.
void Engine::first_came(uint64_t now, uint32_t event) {
  const Event came = queue_[event];
  queue_.release(event);
  if (ranks_[came.rank].left == 0) return;
  Counter* const counter = counter_of(came.rank, came.operation);
  if (counter == nullptr || std::exchange(counter->has_first, true)) return;
  if (record_ != nullptr) [[unlikely]]
    record_->of(came.rank, came.operation).first_came = came.source;
  count_down(now, came.rank, came.operation);
}

std::vector<uint32_t> Engine::stalled_ranks() const {
  std::vector<uint32_t> found;
  for (uint32_t rank = 0; rank < ranks_.size() && found.size() < stalled_ranks_most; ++rank) {
    const Rank& state = ranks_[rank];
    if (state.left + state.posted.size + state.arrived.size > 0 || arrivals_.first_that_waits(rank).has_value()) {
      found.push_back(rank);
    }
  }
  return found;
}

Error Engine::stall() const {
  Stall stall{{}, events_, unmatched_, left_, {}};
  for (const uint32_t rank : stalled_ranks()) {
    const Rank& state = ranks_[rank];
    stall.ranks.push_back({rank, matching_.first_or_none(state.posted), matching_.first_or_none(state.arrived),
                           arrivals_.first_that_waits(rank), state.left > 0});
  }
  return stall_error(schedule_, *begun_, stall);
}

}  // namespace spinloom::goal
