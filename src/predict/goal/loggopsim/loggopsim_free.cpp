// LogGopSimEngine: events that wait for a resource, and operations that wait for other operations.
#include <algorithm>

#include "predict/goal/loggopsim/loggopsim_engine.hpp"

namespace spinloom::goal {

using schedule::Awaits;
using schedule::Edge;
using schedule::Kind;
using schedule::Program;

Waiters& LogGopSimEngine::waiters_of(uint32_t rank, uint32_t index) {
  uint32_t& first = ranks_[rank].waiters;
  if (first == none) {
    first = static_cast<uint32_t>(waiters_.size());
    waiters_.resize(waiters_.size() + waiters_per_rank_);
  }
  return waiters_[first + index];
}

void LogGopSimEngine::wait(uint64_t until, uint32_t event, uint32_t index) {
  Event& waiting = queue_[event];
  Waiters& waiters = waiters_of(waiting.rank, index);
  if (!waiting.is_leader && waiters.leader != none) {
    if (until >= waiters.time && waiting.number > queue_[waiters.leader].number) {
      waiters.time = until;
      waiters.add(queue_, event);
      return;
    }
    if (until < waiters.time) {
      queue_.push(until, event);
      return;
    }
    queue_[waiters.leader].is_leader = false;
    waiters.leader = none;
  }
  waiters.time = waiting.is_leader ? std::max(waiters.time, until) : until;
  waiters.leader = event;
  waiting.is_leader = true;
  queue_.push(until, event);
}

// Chooses the next leader of Waiters whose leader has begun.
void LogGopSimEngine::lead_next(uint32_t rank, uint32_t index, uint64_t free_at) {
  Waiters& waiters = waiters_of(rank, index);
  waiters.leader = waiters.take(queue_);
  if (waiters.leader == none) return;
  waiters.time = std::max(waiters.time, free_at);
  queue_[waiters.leader].is_leader = true;
  queue_.push(waiters.time, waiters.leader);
}

void LogGopSimEngine::begin(uint32_t rank, uint32_t operation) {
  --not_begun_;
  --ranks_[rank].not_begun;
  if (begun_ != nullptr) [[unlikely]] {
    if (const auto found = begun_->find(rank); found != begun_->end()) found->second[operation] = true;
  }
  release(rank, operation, Awaits::start, false);
}

void LogGopSimEngine::end(uint32_t rank, uint32_t operation, bool is_second) {
  release(rank, operation, Awaits::end, is_second);
}

void LogGopSimEngine::raise_clocks(uint32_t rank, uint32_t cpu, uint32_t nic, uint64_t time) {
  cpu_clock(rank, cpu) = std::max(cpu_clock(rank, cpu), time);
  send_clock(rank, nic) = std::max(send_clock(rank, nic), time);
}

void LogGopSimEngine::release(uint32_t rank, uint32_t operation, Awaits awaits, bool is_second) {
  for (const Edge& edge : schedule_.program(rank).edges_of(operation)) {
    if (edge.awaits() == awaits) count_down(rank, edge.to(), is_second);
  }
  Rank& state = ranks_[rank];
  if (state.not_begun == 0 && state.counters != none) {
    const size_t size = plans_[schedule_.number_of_program(rank)].dependency_counts.size();
    free_counters_[size].push_back(std::exchange(state.counters, none));
  }
}

// `is_second`: this wait has been counted before; an operation that waited for nothing else has begun.
void LogGopSimEngine::count_down(uint32_t rank, uint32_t operation, bool is_second) {
  Rank& state = ranks_[rank];
  if (state.not_begun == 0) return;
  const Plan& plan = plans_[schedule_.number_of_program(rank)];
  const uint32_t counter = plan.counter_of.empty() ? none : plan.counter_of[operation];
  if (counter == none) {
    if (is_second) return;
  } else {
    if (state.counters == none) {
      std::vector<uint32_t>& unused = free_counters_[plan.dependency_counts.size()];
      if (unused.empty()) {
        unused.push_back(static_cast<uint32_t>(counters_.size()));
        counters_.resize(counters_.size() + plan.dependency_counts.size());
      }
      state.counters = unused.back();
      unused.pop_back();
      std::ranges::copy(plan.dependency_counts, counters_.begin() + state.counters);
    }
    if (--counters_[state.counters + counter] != 0) return;
  }
  const size_t side = freed_rank_[0] == none || freed_rank_[0] == rank ? 0 : 1;
  freed_rank_[side] = rank;
  freed_[side].push_back(operation);
}

// Pushes ranks in rising order; for each rank, sends before receives before computations.
void LogGopSimEngine::push_freed() {
  if (freed_rank_[0] == none) return;
  const size_t first = freed_rank_[1] < freed_rank_[0] ? 1 : 0;
  push_freed(freed_rank_[first], freed_[first]);
  if (freed_rank_[1 - first] != none) push_freed(freed_rank_[1 - first], freed_[1 - first]);
  freed_rank_[0] = freed_rank_[1] = none;
}

void LogGopSimEngine::push_freed(uint32_t rank, std::vector<uint32_t>& freed) {
  if (freed.size() == 1) {
    push_operation(rank, freed.front());
  } else {
    const Program& program = schedule_.program(rank);
    for (const Kind kind : {Kind::send, Kind::receive, Kind::compute}) {
      for (const uint32_t operation : freed) {
        if (schedule_.shape(program.operations[operation]).kind == kind) push_operation(rank, operation);
      }
    }
  }
  freed.clear();
}

void LogGopSimEngine::push_operation(uint32_t rank, uint32_t operation) {
  const uint32_t shape = schedule_.program(rank).operations[operation].shape;
  const Kind kind = schedule_.shapes()[shape].kind;
  const Costs& costs = costs_[shape];
  uint64_t time = cpu_clock(rank, costs.cpu_index);
  EventKind what = EventKind::receive;
  if (kind == Kind::send) {
    time = std::max(time, send_clock(rank, costs.nic_index));
    what = EventKind::send;
  } else if (kind == Kind::compute) {
    what = EventKind::compute;
  }
  const uint32_t event = queue_.add();
  queue_[event] = {next_number_++, none, rank, operation, rank, shape, what, false};
  queue_.push(time, event);
}

}  // namespace spinloom::goal
