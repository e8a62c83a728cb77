#include "predict/goal/model/engine.hpp"

#include <algorithm>
#include <utility>

#include "predict/goal/model/places.hpp"

namespace spinloom::goal {

using schedule::Kind;
using schedule::Program;
using schedule::Schedule;
using schedule::Shape;

namespace {

EventKind event_of(Kind kind) {
  if (kind == Kind::compute) return EventKind::compute;
  if (kind == Kind::receive) return EventKind::receive;
  return kind == Kind::arrived ? EventKind::arrived : EventKind::send;
}

Status overflows() {
  return fail(Code::overflow, "the modelled time passes ", time_ps_max,
              " ps, which is 53 days; use a smaller unit, shorter computations or smaller parameters");
}

}  // namespace

Result<Outcome> run(const Schedule& schedule, const Model& model, Record* record, const Watch& watch) {
  SPL_TRY(check_peers(schedule, watch));
  SPL_TRY(check_places(schedule));
  Begun begun;
  {
    Engine engine(schedule, model, nullptr, record);
    SPL_TRY(engine.run(watch));
    if (schedule.operations() > 0 && !engine.has_stalled()) return engine.outcome();
    for (const uint32_t rank : engine.stalled_ranks()) begun[rank].resize(schedule.program(rank).size());
  }
  Engine second_run(schedule, model, &begun);
  SPL_TRY(second_run.run(watch));
  return second_run.stall();
}

Engine::Engine(const Schedule& schedule, const Model& model, Begun* begun, Record* record)
    : schedule_(schedule), model_(model), begun_(begun), record_(record), matching_(model.tags_apart) {
  const Places places(schedule);
  cpus_each_ = places.cpus();
  nics_each_ = places.nics();
  const size_t ranks = schedule.ranks();
  cpus_.resize(cpus_each_ * ranks);
  nics_.resize(nics_each_ * ranks);
  ranks_.resize(ranks);
  if (record != nullptr) record->start(schedule, cpus_.size());
  plans_.reserve(schedule.programs().size());
  std::vector<uint32_t> users(schedule.programs().size());
  for (uint32_t rank = 0; rank < ranks; ++rank) ++users[schedule.number_of_program(rank)];
  for (size_t number = 0; number < users.size(); ++number) {
    const Program& program = schedule.programs()[number];
    const bool is_planned = users[number] > 1 && program.passes == 1;
    plans_.push_back(is_planned ? plan_of(program) : Plan());
    plans_.back().is_windowed = !is_planned;
  }
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    ranks_[rank].not_begun = schedule.program(rank).size();
    not_begun_ += ranks_[rank].not_begun;
  }
}

Status Engine::price_shapes() {
  const Places places(schedule_);
  for (uint32_t number = 0; number < schedule_.shapes().size(); ++number) {
    const Shape& shape = schedule_.shapes()[number];
    Costs costs{};
    costs.size = shape.size;
    costs.tag = shape.tag;
    costs.cpu = places.cpu(shape);
    costs.nic = places.nic(shape);
    costs.kind = shape.kind;
    costs.begin_event = event_of(shape.kind);
    if (shape.kind == Kind::arrived) {
      costs_.push_back(costs);
      continue;
    }
    if (shape.kind == Kind::compute) {
      costs.cpu_ps = time_ps({static_cast<int64_t>(std::min(model_.unit_ps, time_ps_max)), 1}, shape.size);
    } else {
      const uint64_t bytes = shape.size > 0 ? shape.size - 1 : 0;
      costs.cpu_ps = clamped(model_.o_ps) + time_ps(model_.O, bytes);
      costs.bytes_ps = time_ps(model_.G, bytes);
      costs.is_rendezvous = shape.size > model_.S_bytes && !schedule::is_one_sided(shape.kind);
      costs.message_kind = costs.is_rendezvous ? MessageKind::request : MessageKind::eager;
      if (schedule::is_one_sided(shape.kind))
        costs.message_kind = shape.kind == Kind::get ? MessageKind::get_request : MessageKind::put;
      if (shape.kind == Kind::get) costs.cpu_ps = model_.o_ps;
    }
    costs.cpu_ps = clamped(costs.cpu_ps);
    costs.bytes_ps = clamped(costs.bytes_ps);
    const bool works = shape.kind != Kind::compute && shape.kind != Kind::get;
    if (works && model_.layout.has_value() && schedule_.transfer_layouts(number).local != schedule::contiguous) {
      costs.layout_ps = clamped(time_ps(*model_.layout, shape.size));
    }
    costs.work_ps = clamped(costs.cpu_ps + costs.layout_ps);
    costs_.push_back(costs);
  }
  model_.L_ps = clamped(model_.L_ps);
  model_.g_ps = clamped(model_.g_ps);
  return has_overflowed_ ? overflows() : Status();
}

Status Engine::make_noise() {
  if (!model_.noise.has_value()) return {};
  const uint64_t period_ps = model_.noise->period_ps;
  const uint64_t length_ps = model_.noise->length_ps;
  if (length_ps >= period_ps || period_ps > time_ps_max) {
    return fail(Code::invalid, "noise of ", length_ps, " ps in each ", period_ps,
                " ps leaves a CPU no time; make it shorter than its period, which is at most ", time_ps_max, " ps");
  }
  noise_.emplace(*model_.noise, schedule_.ranks());
  return {};
}

Status Engine::make_network() {
  if (!model_.network.has_value()) return {};
  model_.network->hop_ps = clamped(model_.network->hop_ps);
  if (has_overflowed_) return overflows();
  SPL_ASSIGN(network_,
             network::Network::make(*model_.network, model_.G, schedule_.ranks(), static_cast<uint32_t>(nics_each_)));
  return {};
}

void Engine::exclude(const Sample& outside_ranks, MessageSink& sink) {
  outside_ranks_ = outside_ranks;
  sink_ = &sink;
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (outside_ranks.has(rank)) not_begun_ -= std::exchange(ranks_[rank].not_begun, 0);
  }
}

Status Engine::start() {
  SPL_TRY(price_shapes());
  SPL_TRY(make_network());
  SPL_TRY(make_noise());
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (sink_ != nullptr && outside_ranks_.has(rank)) continue;
    const Plan& plan = plans_[schedule_.number_of_program(rank)];
    for (const uint32_t operation : plan.roots) push_operation(0, rank, operation);
    if (plan.is_windowed) for_each_root(schedule_.program(rank), [&](uint32_t root) { push_operation(0, rank, root); });
  }
  return trouble();
}

void Engine::step() {
  const auto [now, event] = queue_.pop();
  if (!step(now, event)) wait(event);
}

Status Engine::trouble() const { return has_overflowed_ ? overflows() : Status(); }

Status Engine::run(const Watch& watch) {
  SPL_TRY(start());
  const uint64_t all = not_begun_;
  uint32_t until_look = events_between_looks;
  while (!queue_.is_empty() && !has_overflowed_) {
    if (--until_look == 0) [[unlikely]] {
      until_look = events_between_looks;
      if (watch && !watch(all - not_begun_)) return ended_by_watch(all - not_begun_);
    }
    const auto [now, event] = queue_.pop();
    if (const Event* const next = queue_.peek_ahead()) {  // most of the time is spent in caches with a million ranks
      __builtin_prefetch(&ranks_[next->rank]);
      __builtin_prefetch(&cpus_[next->rank * cpus_each_]);
      __builtin_prefetch(&nics_[next->rank * nics_each_]);
    }
    if (!step(now, event)) wait(event);
  }
  return trouble();
}

Outcome Engine::outcome() const {
  Outcome outcome;
  outcome.events = event_count_;
  for (std::vector<uint64_t>* const one : {&outcome.finish_ps, &outcome.compute_ps, &outcome.overhead_ps}) {
    one->reserve(ranks_.size());
  }
  for (const Rank& rank : ranks_) {
    outcome.finish_ps.push_back(rank.finish_ps);
    outcome.compute_ps.push_back(rank.compute_ps);
    outcome.overhead_ps.push_back(rank.overhead_ps);
    outcome.makespan_ps = std::max(outcome.makespan_ps, rank.finish_ps);
  }
  return outcome;
}

bool Engine::step(uint64_t now, uint32_t event) {
  switch (queue_[event].kind) {
    case EventKind::send: return send(now, event);
    case EventKind::receive: return receive(now, event);
    case EventKind::compute: return compute(now, event);
    case EventKind::deliver: return deliver(now, event);
    case EventKind::enter: enter(now, event); return true;
    case EventKind::travel: travel(now, event); return true;
    case EventKind::leave: leave(now, event); return true;
    case EventKind::arrive: arrive(now, event); return true;
    case EventKind::complete: return complete(now, event);
    case EventKind::served: served(now, event); return true;
    case EventKind::first_came: first_came(now, event); return true;
    case EventKind::arrived: arrived(now, event); return true;
    case EventKind::message: break;  // the dialect's
  }
  return true;
}

bool Engine::compute(uint64_t now, uint32_t event) {
  const Event current = queue_[event];
  const Costs& costs = costs_[current.shape];
  Cpu& cpu = cpu_of(current.rank, costs);
  if (is_busy(cpu, now)) return false;
  queue_.release(event);
  const uint64_t end_ps = end_of_work(now, current.rank, costs.cpu_ps);
  if (record_ != nullptr) [[unlikely]] {
    record_->work(cpu_number(current.rank, costs), now, end_ps, current.rank, current.operation);
  }
  occupy(cpu, end_ps, current.is_leader);
  count_busy(ranks_[current.rank].compute_ps, end_ps - now);
  begin(now, current.rank, current.operation);
  end(end_ps, current.rank, current.operation);
  return true;
}

bool Engine::send(uint64_t now, uint32_t event) {
  const Event current = queue_[event];
  const Costs& costs = costs_[current.shape];
  Cpu& cpu = cpu_of(current.rank, costs);
  if (is_busy(cpu, now)) return false;
  const uint64_t end_ps = end_of_work(now, current.rank, costs.work_ps);
  if (record_ != nullptr) [[unlikely]] {
    record_->work(cpu_number(current.rank, costs), now, end_ps, current.rank, current.operation);
  }
  occupy(cpu, end_ps, current.is_leader);
  count_busy(ranks_[current.rank].overhead_ps, end_ps - now);
  Event& message = queue_[event];
  message.source = current.rank;
  message.rank = schedule_.peer(current.rank, schedule_.program(current.rank).operation(current.operation));
  message.is_leader = false;
  message.message_kind = costs.message_kind;
  push(end_ps, event, EventKind::leave);
  begin(now, current.rank, current.operation);
  if (costs.message_kind == MessageKind::eager) end(end_ps, current.rank, current.operation);
  return true;
}

bool Engine::receive(uint64_t now, uint32_t event) {
  const Event current = queue_[event];
  const Costs& costs = costs_[current.shape];
  Cpu& cpu = cpu_of(current.rank, costs);
  if (is_busy(cpu, now)) return false;
  if (record_ != nullptr) [[unlikely]]
    record_->post(cpu_number(current.rank, costs), now, current.rank, current.operation);
  begin(now, current.rank, current.operation);
  const uint32_t source = schedule_.peer(current.rank, schedule_.program(current.rank).operation(current.operation));
  Matching::Item message;
  if (!matching_.take(ranks_[current.rank].arrived, source, costs.tag, message)) {
    queue_.release(event);
    occupy(cpu, now, current.is_leader);
    matching_.add(ranks_[current.rank].posted, {source, costs.tag, current.operation, current.shape});
    ++unmatched_;
    return true;
  }
  --unmatched_;
  if (record_ != nullptr) [[unlikely]] {
    record_->match(now, current.rank, current.operation, message.source, message.operation, true);
  }
  Event& taken = queue_[event];
  taken.source = message.source;
  taken.operation = message.operation;
  taken.shape = message.shape;
  if (costs_[message.shape].is_rendezvous) {
    occupy(cpu, now, current.is_leader);
    answer(now, event, current.operation);
    return true;
  }
  taken.operation = current.operation;
  return deliver(now, event);
}

// `operation` is that of the receive, `shape` that of the send.
bool Engine::deliver(uint64_t now, uint32_t event) {
  const Event current = queue_[event];
  const Costs& costs = costs_of(current.rank, current.operation);
  Cpu& cpu = cpu_of(current.rank, costs);
  if (is_busy(cpu, now)) return false;
  const uint64_t end_ps = end_of_work(now, current.rank, costs_[current.shape].cpu_ps + costs.layout_ps);
  if (record_ != nullptr) [[unlikely]] {
    record_->work(cpu_number(current.rank, costs), now, end_ps, current.rank, current.operation);
  }
  queue_.release(event);
  occupy(cpu, end_ps, current.is_leader);
  count_busy(ranks_[current.rank].overhead_ps, end_ps - now);
  end(end_ps, current.rank, current.operation);
  return true;
}

}  // namespace spinloom::goal
