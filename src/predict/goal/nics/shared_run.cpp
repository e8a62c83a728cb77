#include "predict/goal/nics/shared_run.hpp"

#include <algorithm>

#include "predict/goal/model/engine.hpp"
#include "predict/goal/nics/seam.hpp"

namespace spinloom::goal {

using schedule::Schedule;

namespace {

// A schedule that stalls also stalls at message level, and that run knows which operations wait for which.
Error stall_of(const Schedule& schedule, const Model& model, uint64_t not_begun, uint64_t unmatched) {
  const auto outcome = run(schedule, model);
  if (!outcome) return outcome.error();
  return fail(Code::stalled,
              "the schedule stalls between ranks of two fidelities, though not at message level: ", not_begun,
              " operations never begin, and ", unmatched, " sends, receives and arrivals wait");
}

Outcome outcome_of(const Engine& engine, const Job& job) {
  Outcome outcome = engine.outcome();
  outcome.events += job.nics.clock().steps();
  for (uint32_t rank = 0; rank < job.hosts.size(); ++rank) {
    if (job.hosts[rank] == nullptr) continue;
    const Host& host = *job.hosts[rank];
    outcome.finish_ps[rank] = host.finish_ps();
    outcome.compute_ps[rank] = host.compute_ps();
    outcome.overhead_ps[rank] = host.overhead_ps();
    outcome.makespan_ps = std::max(outcome.makespan_ps, host.finish_ps());
  }
  return outcome;
}

}  // namespace

Result<Outcome> run_shared(Nics& nics, Payloads& payloads, Rate copy_rate, const Schedule& schedule, const Model& model,
                           const Sharing& sharing, const Watch& watch) {
  Job job = make_job(nics, payloads, copy_rate, schedule);
  SPL_TRY(make_hosts(job, model, sharing.sample));
  Engine engine(schedule, model);
  SPL_ASSIGN(const auto seam, Seam::create(engine, job, sharing.profile, model.L_ps));
  engine.exclude(sharing.sample, *seam);
  nics.connect(*seam);
  SPL_TRY(engine.start());
  const uint64_t operations = job.not_begun + engine.not_begun();
  for (const auto& host : job.hosts) {
    if (host != nullptr) host->begin();
  }
  uint32_t until_look = nic_events_between_looks;
  simulated::EventQueue& clock = nics.clock();
  while (!job.error && engine.trouble()) {
    const uint64_t message_ps = engine.next_ps();
    const uint64_t nics_ps = clock.empty() ? Engine::never : static_cast<uint64_t>(clock.next().ps) - job.start_ps;
    if (message_ps == Engine::never && nics_ps == Engine::never) break;
    if (message_ps <= nics_ps) {
      engine.step();
    } else {
      clock.step();
    }
    if (--until_look > 0) continue;
    until_look = nic_events_between_looks;
    const uint64_t begun = operations - job.not_begun - engine.not_begun();
    if (watch && !watch(begun)) return ended_by_watch(begun);
  }
  if (job.error) return *job.error;
  SPL_TRY(engine.trouble());
  SPL_TRY(nics.trouble());
  if (operations == 0 || job.not_begun + job.unmatched > 0 || engine.has_stalled()) {
    return stall_of(schedule, model, job.not_begun + engine.not_begun(), job.unmatched + engine.unmatched());
  }
  SPL_TRY(seam->trouble());
  SPL_TRY(trouble_of(job));
  return outcome_of(engine, job);
}

}  // namespace spinloom::goal
