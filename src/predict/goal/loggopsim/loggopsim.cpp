#include "predict/goal/loggopsim/loggopsim.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "predict/goal/loggopsim/loggopsim_engine.hpp"
#include "predict/goal/model/places.hpp"

namespace spinloom::goal {

using schedule::Kind;
using schedule::Program;
using schedule::Schedule;
using schedule::Shape;

Result<LogGopSimOutcome> run_loggopsim(const Schedule& schedule, const LogGopSimParameters& parameters,
                                       const Watch& watch) {
  if (schedule.repeats()) return run_loggopsim(schedule.unrolled(), parameters, watch);
  SPL_TRY(check_plain(schedule, "which LogGOPSim does not know; run it by our own model"));
  SPL_TRY(check_peers(schedule));
  SPL_TRY(check_places(schedule));
  Begun begun;
  {
    LogGopSimEngine engine(schedule, parameters);
    SPL_TRY(engine.run(watch));
    if (schedule.operations() > 0 && !engine.has_stalled()) return engine.outcome();
    for (const uint32_t rank : engine.stalled_ranks()) begun[rank].resize(schedule.program(rank).size());
  }
  LogGopSimEngine second_run(schedule, parameters, &begun);
  SPL_TRY(second_run.run(watch));
  return second_run.stall();
}

LogGopSimEngine::LogGopSimEngine(const Schedule& schedule, const LogGopSimParameters& parameters, Begun* begun)
    : schedule_(schedule), parameters_(parameters), begun_(begun), matching_(parameters.tags_apart) {
  price_shapes();
  clocks_per_rank_ = cpus_ + 2 * nics_;
  clocks_.resize(clocks_per_rank_ * schedule.ranks());
  plans_.reserve(schedule.programs().size());
  for (const Program& program : schedule.programs()) {
    Plan& plan = plans_.emplace_back(plan_of(program));
    std::ranges::sort(plan.roots, {},
                      [&](uint32_t one) { return std::pair(schedule.shape(program.operations[one]).kind, one); });
  }
  ranks_.resize(schedule.ranks());
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    ranks_[rank].not_begun = schedule.program(rank).size();
    not_begun_ += ranks_[rank].not_begun;
  }
}

void LogGopSimEngine::price_shapes() {
  const auto& [L, o, g, G, O, S, tags_apart] = parameters_;
  const Places places(schedule_);
  cpus_ = places.cpus();
  nics_ = places.nics();
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> waiters;  // the key is what is waited for
  const auto waiters_for = [&](uint32_t what, const Costs& costs) {
    const uint32_t nic = what == 0 ? 0 : costs.nic_index;
    return waiters.try_emplace({what, costs.cpu_index, nic}, static_cast<uint32_t>(waiters.size())).first->second;
  };
  for (const Shape& shape : schedule_.shapes()) {
    Costs costs{};
    costs.size = shape.size;
    costs.tag = shape.tag;
    costs.cpu_index = places.cpu(shape);
    costs.nic_index = places.nic(shape);
    costs.is_rendezvous = shape.size > S;
    costs.is_relative = shape.peer == schedule::Peer::relative;
    if (shape.kind == Kind::compute) {
      costs.cpu_time = shape.size;
      costs.waiters = waiters_for(0, costs);
    } else if (shape.kind == Kind::send) {
      const uint64_t bytes = shape.size - 1;
      costs.cpu_time = o + bytes * O;
      costs.gap_time = g + bytes * G;
      costs.receive_cpu_time = o + std::max(bytes * O, bytes * G);
      costs.waiters = waiters_for(1, costs);
      costs.message_waiters = waiters_for(2, costs);
    }
    costs_.push_back(costs);
  }
  waiters_per_rank_ = static_cast<uint32_t>(waiters.size());
}

void LogGopSimEngine::begin_roots() {
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    for (const uint32_t operation : plans_[schedule_.number_of_program(rank)].roots) push_operation(rank, operation);
  }
}

Status LogGopSimEngine::run(const Watch& watch) {
  begin_roots();
  const uint64_t operations = not_begun_;
  uint32_t until_look = events_between_looks;
  while (!queue_.is_empty()) {
    if (--until_look == 0) [[unlikely]] {
      until_look = events_between_looks;
      if (watch && !watch(operations - not_begun_)) return ended_by_watch(operations - not_begun_);
    }
    const auto [time, event] = queue_.pop();
    if (const Event* const next = queue_.peek_ahead()) {  // most of the time is spent in caches with a million ranks
      __builtin_prefetch(&ranks_[next->rank]);
      __builtin_prefetch(&clocks_[next->rank * clocks_per_rank_]);
    }
    bool has_happened = true;
    switch (queue_[event].kind) {
      case EventKind::send: has_happened = send(time, event); break;
      case EventKind::compute: has_happened = compute(time, event); break;
      case EventKind::message: has_happened = arrive(time, event); break;
      case EventKind::receive: receive(time, event); break;
      default: break;  // the others are not of these rules
    }
    if (!has_happened) continue;
    ++event_count_;
    push_freed();
  }
  return {};
}

LogGopSimOutcome LogGopSimEngine::outcome() const {
  LogGopSimOutcome outcome;
  outcome.events = event_count_;
  outcome.host_times.reserve(ranks_.size());
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    const uint64_t* const clocks = clocks_.data() + rank * clocks_per_rank_;
    outcome.host_times.push_back(*std::max_element(clocks, clocks + cpus_));
    outcome.makespan = std::max(outcome.makespan, outcome.host_times.back());
  }
  return outcome;
}

bool LogGopSimEngine::compute(uint64_t time, uint32_t event) {
  const auto [rank, operation, is_leader] = operation_of(event);
  const Costs& costs = costs_[queue_[event].shape];
  uint64_t& cpu = cpu_clock(rank, costs.cpu_index);
  if (cpu > time) {
    wait(cpu, event, costs.waiters);
    return false;
  }
  cpu = time + costs.cpu_time;
  queue_.release(event);
  if (is_leader) lead_next(rank, costs.waiters, cpu);
  begin(rank, operation);
  end(rank, operation);
  return true;
}

bool LogGopSimEngine::send(uint64_t time, uint32_t event) {
  const auto [rank, operation, is_leader] = operation_of(event);
  const Costs& costs = costs_[queue_[event].shape];
  uint64_t& cpu = cpu_clock(rank, costs.cpu_index);
  uint64_t& nic = send_clock(rank, costs.nic_index);
  const uint64_t ready = std::max(cpu, nic);
  if (ready > time) {
    wait(ready, event, costs.waiters);
    return false;
  }
  cpu = time + costs.cpu_time;
  nic = time + costs.gap_time;
  if (is_leader) lead_next(rank, costs.waiters, std::max(cpu, nic));
  Event& message = queue_[event];
  message.number = next_number_++;
  message.rank = schedule_.peer(rank, schedule_.program(rank).operations[operation]);
  message.source = rank;
  message.kind = EventKind::message;
  message.is_leader = false;
  queue_.push(time + parameters_.o + parameters_.L, event);
  begin(rank, operation);
  if (!costs.is_rendezvous) end(rank, operation);
  return true;
}

bool LogGopSimEngine::arrive(uint64_t time, uint32_t event) {
  const Event message = queue_[event];
  const uint32_t rank = message.rank;
  const Costs& costs = costs_[message.shape];
  uint64_t& cpu = cpu_clock(rank, costs.cpu_index);
  uint64_t& nic = receive_clock(rank, costs.nic_index);
  const uint64_t ready = std::max(cpu, nic);
  if (ready > time) {
    wait(ready, event, costs.message_waiters);
    return false;
  }
  cpu = time + costs.receive_cpu_time;
  nic = time + costs.gap_time;
  queue_.release(event);
  if (message.is_leader) lead_next(rank, costs.message_waiters, std::max(cpu, nic));
  Matching::Item receive;
  if (!matching_.take(ranks_[rank].posted, message.source, costs.tag, receive)) {
    matching_.add(ranks_[rank].arrived, {message.source, costs.tag, message.operation, message.shape});
    ++unmatched_;
    return true;
  }
  --unmatched_;
  end(rank, receive.operation);
  if (costs.is_rendezvous) {
    end(message.source, message.operation);
    raise_clocks(message.source, costs.cpu_index, costs.nic_index, time);
  }
  return true;
}

void LogGopSimEngine::receive(uint64_t time, uint32_t event) {
  const Event receive = queue_[event];
  const uint32_t rank = receive.rank;
  const Costs& costs = costs_[receive.shape];
  queue_.release(event);
  begin(rank, receive.operation);
  const uint32_t source = schedule_.peer(rank, schedule_.program(rank).operations[receive.operation]);
  Matching::Item message;
  if (!matching_.take(ranks_[rank].arrived, source, costs.tag, message)) {
    matching_.add(ranks_[rank].posted, {source, costs.tag, receive.operation, receive.shape});
    ++unmatched_;
    return;
  }
  --unmatched_;
  end(rank, receive.operation);
  // The size of the receive decides whether the sender waits: an eager send ends twice, or one by rendezvous never.
  const bool was_rendezvous = costs_[message.shape].is_rendezvous;
  if (costs.is_rendezvous) {
    end(message.source, message.operation, !was_rendezvous);
    raise_clocks(message.source, costs.cpu_index, costs.nic_index, time);
  } else if (was_rendezvous) {
    ++never_ended_;
  }
}

std::vector<uint32_t> LogGopSimEngine::stalled_ranks() const {
  std::vector<uint32_t> stalled;
  for (uint32_t rank = 0; rank < ranks_.size() && stalled.size() < stalled_ranks_max; ++rank) {
    const Rank& state = ranks_[rank];
    if (state.not_begun + state.posted.size + state.arrived.size > 0) stalled.push_back(rank);
  }
  return stalled;
}

Error LogGopSimEngine::stall() const {
  Stall stall{{}, event_count_, unmatched_, not_begun_, {}};
  for (const uint32_t rank : stalled_ranks()) {
    const Rank& state = ranks_[rank];
    stall.ranks.push_back(
        {rank, matching_.first_or_none(state.posted), matching_.first_or_none(state.arrived), {}, state.not_begun > 0});
  }
  if (never_ended_ > 0) {
    stall.remark = text(never_ended_, " sends of more than S = ", parameters_.S,
                        " B met later receives of no more than S, so they never end");
  }
  return stall_error(schedule_, *begun_, stall);
}

}  // namespace spinloom::goal
