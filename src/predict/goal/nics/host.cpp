#include "predict/goal/nics/host.hpp"

#include <algorithm>

#include "base/limits.hpp"

namespace spinloom::goal {

using schedule::Awaits;
using schedule::Kind;

namespace {

// Hosts act after the NICs' events of the same moment, in the order of the codes.
constexpr uint32_t first_tie = 1 << 16;

}  // namespace

Host::Host(Job& job, uint32_t rank)
    : job_(job),
      rank_(rank),
      program_(job.schedule.program(rank)),
      pending_(job.dependency_counts[job.schedule.number_of_program(rank)]),
      begun_(program_.size()),
      matched_(program_.size()),
      cpus_(job.cpus_per_rank),
      entries_("matching entries of a rank", limits::entry_count_max, "entry_count_max"),
      counters_("counters of a rank", limits::counter_count_max, "counter_count_max"),
      not_begun_(program_.size()),
      not_ended_(program_.size()) {
  if (!program_.have_any_edges().empty()) is_any_met_.resize(program_.size());
  for (uint32_t left = entries_of_setup(job.payloads, rank); left > 0; --left) (void)entries_.take();
  for (size_t left = job.payloads.windows().windows_of(rank).size(); left > 0; --left) (void)counters_.take();
}

uint64_t Host::now() const { return static_cast<uint64_t>(job_.nics.clock().now().ps) - job_.start_ps; }

void Host::begin() {
  for (uint32_t operation = 0; operation < program_.size(); ++operation) {
    if (pending_[operation] == 0) on_ready(operation);
  }
}

void Host::stop(const Error& error) {
  if (!job_.error) job_.error = error;
}

void Host::on_ready(uint32_t number) {
  const Kind kind = shape(number).kind;
  const Step step = kind == Kind::compute   ? Step::compute
                    : kind == Kind::receive ? Step::receive
                    : kind == Kind::arrived ? Step::arrived
                                            : Step::send;
  if (job_.record != nullptr) job_.record->of(rank_, number).ready_ps = now();
  simulated::EventQueue& clock = job_.nics.clock();
  clock.at(clock.now(), *this, static_cast<uint32_t>(step), number, first_tie + static_cast<uint32_t>(step));
}

void Host::on_event(uint32_t code, uint64_t argument) {
  if (static_cast<Step>(code) == Step::arrived) return begin_arrived(static_cast<uint32_t>(argument));
  if (static_cast<Step>(code) != Step::worked)
    return queue_or_work({static_cast<Step>(code), static_cast<uint32_t>(argument), 0});
  Cpu& cpu = cpus_[argument];
  cpu.is_busy = false;
  finish(cpu.task);
  while (!cpu.is_busy && !cpu.waiting.empty()) {
    const Task next = cpu.waiting.front();
    cpu.waiting.pop_front();
    work(cpu, next);
  }
}

void Host::queue_or_work(const Task& task) {
  Cpu& cpu = cpus_[job_.costs[operation(task.operation).shape].cpu];
  if (cpu.is_busy) {
    cpu.waiting.push_back(task);
  } else {
    work(cpu, task);
  }
}

void Host::work(Cpu& cpu, const Task& task) {
  const Job::Costs& costs = job_.costs[operation(task.operation).shape];
  uint64_t work_ps = costs.cpu_ps + costs.layout_ps;
  if (task.step == Step::receive) work_ps = 0;
  if (task.step == Step::deliver) work_ps = delivery_ps(receives_[task.slot]);
  const uint64_t begin_ps = now();
  const uint64_t end_ps = job_.noise ? job_.noise->end_of_work(rank_, begin_ps, work_ps) : begin_ps + work_ps;
  if (end_ps > time_ps_max) {
    return stop(fail(Code::overflow, "the modelled time passes ", time_ps_max,
                     " ps, which is 53 days; use a smaller unit or shorter computations"));
  }
  (task.step == Step::compute ? compute_ps_ : overhead_ps_) += end_ps - begin_ps;
  if (job_.record != nullptr) {
    const size_t number = rank_ * job_.cpus_per_rank + static_cast<size_t>(&cpu - cpus_.data());
    if (task.step == Step::receive) {
      job_.record->post(number, begin_ps, rank_, task.operation);
    } else {
      job_.record->work(number, begin_ps, end_ps, rank_, task.operation);
    }
  }
  const Kind kind = shape(task.operation).kind;
  if (task.step == Step::receive || (task.step == Step::send && kind == Kind::send)) ++job_.unmatched;
  if (task.step != Step::deliver) on_begin(task.operation);
  if (end_ps == begin_ps) return finish(task);
  cpu.is_busy = true;
  cpu.task = task;
  simulated::EventQueue& clock = job_.nics.clock();
  const Time end{static_cast<int64_t>(end_ps + job_.start_ps)};
  clock.at(end, *this, static_cast<uint32_t>(Step::worked), static_cast<uint64_t>(&cpu - cpus_.data()), first_tie);
}

void Host::finish(const Task& task) {
  switch (task.step) {
    case Step::send:
      return shape(task.operation).kind == Kind::send ? send_message(task.operation)
                                                      : submit_one_sided(task.operation, {});
    case Step::receive: return post(task.operation);
    case Step::deliver: return on_delivered(task.slot);
    case Step::compute:
    case Step::arrived:
    case Step::worked: return on_end(task.operation);
  }
}

void Host::on_begin(uint32_t number) {
  --job_.not_begun;
  --not_begun_;
  begun_[number] = true;
  release(number, Awaits::start);
}

void Host::on_end(uint32_t number) {
  finish_ps_ = std::max(finish_ps_, now());
  if (job_.record != nullptr) job_.record->of(rank_, number).end_ps = now();
  release(number, Awaits::end);
  if (--not_ended_ == 0) job_.nics.release(rank_);
}

void Host::release(uint32_t number, Awaits awaits) {
  for (const schedule::Edge& edge : program_.edges_of(number)) {
    if (edge.awaits() != awaits) continue;
    if (edge.join() == schedule::Join::first) {
      if (is_any_met_[edge.to()]) continue;
      is_any_met_[edge.to()] = true;
    }
    if (--pending_[edge.to()] == 0 && !is_triggered(edge.to())) on_ready(edge.to());
  }
}

}  // namespace spinloom::goal
