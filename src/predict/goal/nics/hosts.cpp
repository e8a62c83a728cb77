// Hosts of a schedule: the costs of their operations, the run, and which operations wait for which where it stalls.
#include <algorithm>
#include <memory>
#include <utility>

#include "predict/goal/model/engine.hpp"
#include "predict/goal/model/places.hpp"
#include "predict/goal/model/stall.hpp"
#include "predict/goal/nics/host.hpp"

namespace spinloom::goal {

using schedule::Kind;
using schedule::Schedule;
using schedule::Shape;

namespace {

Status price_shapes(Job& job, const Model& model) {
  const Places places(job.schedule);
  job.cpus_per_rank = places.cpus();
  for (const Shape& shape : job.schedule.shapes()) {
    Job::Costs costs{shape.size, 0, 0, places.cpu(shape), false};
    const bool works = shape.kind != Kind::compute && shape.kind != Kind::get;
    const auto number = static_cast<uint32_t>(job.costs.size());
    if (works && model.layout && job.schedule.transfer_layouts(number).local != schedule::contiguous) {
      costs.layout_ps = std::min(time_ps(*model.layout, shape.size), time_ps_max);
    }
    if (shape.kind == Kind::arrived) {
      costs.cpu_ps = 0;
    } else if (shape.kind == Kind::compute) {
      const auto work_ps = static_cast<unsigned __int128>(shape.size) * model.unit_ps;
      costs.cpu_ps = static_cast<uint64_t>(std::min<unsigned __int128>(work_ps, time_ps_max + 1));
    } else {
      const uint64_t n = shape.size == 0 || shape.kind == Kind::get ? 0 : shape.size - 1;
      costs.cpu_ps = std::min(time_ps(model.O, n), time_ps_max) + std::min(model.o_ps, time_ps_max);
      costs.is_rendezvous = shape.kind == Kind::send && shape.size > model.S_bytes;
    }
    if (costs.cpu_ps + costs.layout_ps > time_ps_max) {
      return fail(Code::overflow, "a computation or the CPU's part of a message takes more than ", time_ps_max,
                  " ps, which is 53 days; use a smaller unit or smaller parameters");
    }
    job.costs.push_back(costs);
  }
  return {};
}

// Returns which operations the NIC begins: one-sided ones that cost no CPU time and wait for `arrived`s only, for all
// or for the first of several.
std::vector<bool> find_triggered(const Job& job, const schedule::Program& program) {
  enum Waits : uint8_t { for_all = 1, for_first = 2, for_others = 4 };
  std::vector<uint8_t> waits(program.size());
  for (uint32_t before = 0; before < program.size(); ++before) {
    const bool is_arrived = job.schedule.shape(program.operations[before]).kind == Kind::arrived;
    for (const schedule::Edge& edge : program.edges_of(before)) {
      const bool counts = is_arrived && edge.awaits() == schedule::Awaits::end;
      waits[edge.to()] |= !counts ? for_others : edge.join() == schedule::Join::all ? for_all : for_first;
    }
  }
  std::vector<bool> triggered(program.size());
  bool is_any = false;
  for (uint32_t number = 0; number < program.size(); ++number) {
    const schedule::Operation& operation = program.operations[number];
    const Job::Costs& costs = job.costs[operation.shape];
    triggered[number] = schedule::is_one_sided(job.schedule.shape(operation).kind) &&
                        costs.cpu_ps + costs.layout_ps == 0 && (waits[number] == for_all || waits[number] == for_first);
    is_any = is_any || triggered[number];
  }
  return is_any ? triggered : std::vector<bool>();
}

// Returns an Error that names operations and what they wait for. No message is on its way any more, so a send that has
// begun is a message that waits.
Error stall_of(const Job& job) {
  const Schedule& schedule = job.schedule;
  std::vector<std::vector<Matching::Item>> arrived(schedule.ranks());
  Stall stall;
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    const schedule::Program& program = schedule.program(rank);
    for (uint32_t number = 0; number < program.size(); ++number) {
      const schedule::Operation& operation = program.operations[number];
      const Host& host = *job.hosts[rank];
      stall.events += host.begun()[number] ? 1 : 0;
      const Shape& shape = schedule.shape(operation);
      if (shape.kind != Kind::send || !host.begun()[number] || host.has_matched(number)) continue;
      arrived[schedule.peer(rank, operation)].push_back({rank, shape.tag, number, operation.shape});
      ++stall.unmatched;
    }
  }
  Begun begun;
  std::vector<Matching::Item> receives;
  receives.reserve(stalled_ranks_max);  // pointers to them stay
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    const Host& host = *job.hosts[rank];
    const std::vector<uint32_t> posted = host.posted();
    const size_t waits = posted.size() + host.waiting_arrivals();
    stall.unmatched += waits;
    if (host.not_begun() + waits + arrived[rank].size() == 0 || stall.ranks.size() == stalled_ranks_max) continue;
    if (!posted.empty()) receives.push_back({rank, 0, posted.front(), 0});
    stall.ranks.push_back({rank, posted.empty() ? nullptr : &receives.back(),
                           arrived[rank].empty() ? nullptr : &arrived[rank].front(), host.first_waiting_arrival(),
                           host.not_begun() > 0});
    begun[rank] = host.begun();
  }
  stall.not_begun = job.not_begun;
  return stall_error(schedule, begun, stall);
}

Outcome outcome_of(const Job& job) {
  Outcome outcome;
  outcome.events = job.nics.clock().steps();
  for (const auto& host : job.hosts) {
    outcome.finish_ps.push_back(host->finish_ps());
    outcome.compute_ps.push_back(host->compute_ps());
    outcome.overhead_ps.push_back(host->overhead_ps());
    outcome.makespan_ps = std::max(outcome.makespan_ps, host->finish_ps());
  }
  return outcome;
}

}  // namespace

Job make_job(Nics& nics, Payloads& payloads, Rate copy_rate, const Schedule& schedule) {
  return {.schedule = schedule,
          .nics = nics,
          .payloads = payloads,
          .costs = {},
          .dependency_counts = {},
          .triggered = {},
          .noise = {},
          .copy_rate = copy_rate,
          .start_ps = static_cast<uint64_t>(nics.clock().now().ps)};
}

Status make_hosts(Job& job, const Model& model, const Sample& sample) {
  const Schedule& schedule = job.schedule;
  SPL_TRY(price_shapes(job, model));
  if (model.noise) job.noise.emplace(*model.noise, schedule.ranks());
  for (const schedule::Program& program : schedule.programs()) {
    job.dependency_counts.push_back(program.dependency_counts());
    job.triggered.push_back(find_triggered(job, program));
  }
  job.hosts.resize(schedule.ranks());
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    if (!sample.has(rank)) continue;
    job.not_begun += schedule.program(rank).size();
    job.hosts[rank] = std::make_unique<Host>(job, rank);
  }
  job.nics.watch([&job](uint32_t rank) { job.hosts[rank]->read_events(); });
  return {};
}

Status trouble_of(const Job& job) {
  for (const auto& host : job.hosts) {
    SPL_ASSERT(host == nullptr || host->has_ended(), "all that has begun and matched ends");
  }
  return job.payloads.windows().check(job.schedule, job.payloads);
}

Result<Outcome> run_hosts(Nics& nics, Payloads& payloads, Rate copy_rate, const Schedule& schedule, const Model& model,
                          Record* record, const Watch& watch) {
  Job job = make_job(nics, payloads, copy_rate, schedule);
  SPL_TRY(make_hosts(job, model));
  if (record != nullptr) record->start(schedule, schedule.ranks() * job.cpus_per_rank);
  job.record = record;
  const uint64_t operations = job.not_begun;
  for (const auto& host : job.hosts) host->begin();
  uint32_t until_look = nic_events_between_looks;
  while (!job.error && nics.clock().step()) {
    if (--until_look > 0) continue;
    until_look = nic_events_between_looks;
    if (watch && !watch(operations - job.not_begun)) return ended_by_watch(operations - job.not_begun);
  }
  if (job.error) return *job.error;
  SPL_TRY(nics.trouble());
  if (schedule.operations() == 0 || job.not_begun > 0 || job.unmatched > 0) return stall_of(job);
  SPL_TRY(trouble_of(job));
  return outcome_of(job);
}

}  // namespace spinloom::goal
