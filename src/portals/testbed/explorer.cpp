#include "portals/testbed/explorer.hpp"

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "portals/interface/interface.hpp"
#include "portals/model/machine.hpp"
#include "portals/model/text.hpp"
#include "portals/testbed/loopback.hpp"
#include "portals/testbed/program_run.hpp"

namespace spinloom::testbed {

Result<model::Outcome> run_loopback(const model::Program& program, uint64_t seed) {
  Random random(seed, "explorer");
  LoopbackOptions options;
  options.ranks = static_cast<uint32_t>(program.ranks.size());
  options.nic.nic_memory_bytes = 1 << 12;
  options.nic.packet_buffer_bytes = 1 << 14;
  options.racy_seed = random.next();
  options.headers_in_order = true;
  options.leans = true;
  options.transfers_first = model::Traits(program).has_races;
  SPL_ASSIGN(const auto loopback, Loopback::create(options));
  std::vector<std::unique_ptr<portals::Interface>> interfaces;
  std::vector<portals::Interface*> pointers;
  for (uint32_t rank = 0; rank < options.ranks; ++rank) {
    interfaces.push_back(std::make_unique<portals::Interface>(loopback->port(rank)));
    pointers.push_back(interfaces.back().get());
  }
  SPL_ASSIGN(const auto run, ProgramRun::create(program, pointers));
  SPL_TRY(loopback->run());
  const uint64_t calls_of_eight = 1 + random.below(7);  // a rank that can call does so as often
  const bool kills = program.killed != model::any;
  uint64_t life = kills ? random.below(60) : UINT64_MAX;  // steps until the rank dies
  bool is_told = !kills;
  for (;;) {
    std::vector<uint16_t> callers;
    for (uint16_t rank = 0; rank < program.ranks.size(); ++rank) {
      if (run->may_call(rank)) callers.push_back(rank);
    }
    if (kills && life-- == 0) {
      loopback->kill(program.killed);
      run->kill(program.killed);
    } else if (!callers.empty() && random.chance(calls_of_eight, 8)) {
      SPL_TRY(run->call(callers[random.below(callers.size())]));
    } else if (loopback->step() || !callers.empty()) {
      continue;
    } else if (kills && life < 60) {
      life = 0;  // all is quiet: it dies now
    } else if (!is_told) {
      is_told = true;
      for (uint16_t rank = 0; rank < program.ranks.size(); ++rank) {
        if (rank != program.killed) loopback->tell_lost(rank, nic::Rank{program.killed});
      }
    } else {
      bool is_settling = false;
      for (uint16_t rank = 0; rank < program.ranks.size(); ++rank) is_settling |= run->is_settling(rank);
      if (!is_settling) break;
      run->pass_settle();
    }
  }
  SPL_TRY(loopback->run());
  return run->finish();
}

namespace {

// When a rank of the program dies: after so many calls, of all ranks or, with a thread for each, of its own. A death
// that has not come by then comes when all is quiet.
struct Death {
  uint64_t calls_left = UINT64_MAX;
  bool is_over = true;

  Death(const model::Program& program, Callers callers, Random& random) {
    if (program.killed == model::any) return;
    is_over = false;
    uint64_t calls = 0;
    for (uint16_t rank = 0; rank < program.ranks.size(); ++rank) {
      if (callers == Callers::one_thread || rank == program.killed) calls += program.ranks[rank].operations.size();
    }
    calls_left = random.below(calls + 1);
  }
};

Status kill(const model::Program& program, ProgramRun& run, Testbed& bed, Death& death) {
  death.is_over = true;
  run.kill(program.killed);
  return bed.kill(program.killed);
}

// Every rank calls until it has ended or settles.
Status call_in_turns(const model::Program& program, ProgramRun& run, Testbed& bed, Death& death, Random& random) {
  for (;;) {
    if (!death.is_over && death.calls_left-- == 0) SPL_TRY(kill(program, run, bed, death));
    std::vector<uint16_t> callers;
    for (uint16_t rank = 0; rank < program.ranks.size(); ++rank) {
      if (run.has_calls(rank) && !run.is_settling(rank)) callers.push_back(rank);
    }
    if (callers.empty()) return {};
    const uint16_t caller = callers[random.below(callers.size())];
    if (run.may_call(caller)) SPL_TRY(run.call(caller));
  }
}

Status call_by_threads(const model::Program& program, ProgramRun& run, Testbed& bed, Death& death) {
  std::vector<Status> results(program.ranks.size());
  std::vector<std::thread> threads;
  for (uint16_t rank = 0; rank < program.ranks.size(); ++rank) {
    threads.emplace_back([&program, &run, &bed, &death, &results, rank] {
      const bool may_die = rank == program.killed && !death.is_over;
      while (results[rank].ok() && run.has_calls(rank) && !run.is_settling(rank)) {
        if (may_die && death.calls_left-- == 0) {
          results[rank] = kill(program, run, bed, death);
        } else if (run.may_call(rank)) {
          results[rank] = run.call(rank);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& result : results) SPL_TRY(result);
  return {};
}

}  // namespace

Result<model::Outcome> run_program(const model::Program& program, Testbed& bed, Random& random, Callers callers) {
  std::vector<portals::Interface*> interfaces;
  for (uint32_t rank = 0; rank < bed.ranks(); ++rank) interfaces.push_back(&bed.rank(rank));
  SPL_ASSIGN(const auto run, ProgramRun::create(program, interfaces));
  SPL_TRY(bed.settle());
  Death death(program, callers, random);
  for (bool is_over = false; !is_over;) {
    SPL_TRY(callers == Callers::one_thread ? call_in_turns(program, *run, bed, death, random)
                                           : call_by_threads(program, *run, bed, death));
    SPL_TRY(bed.settle());
    is_over = true;
    for (uint16_t rank = 0; rank < program.ranks.size(); ++rank) is_over = is_over && !run->is_settling(rank);
    run->pass_settle();
    if (!is_over || death.is_over) continue;
    SPL_TRY(kill(program, *run, bed, death));
    SPL_TRY(bed.settle());
  }
  return run->finish();
}

Result<Exploration> explore(const model::Program& program, const std::set<model::Outcome>& expected,
                            uint64_t schedules_max) {
  Exploration exploration;
  while (exploration.schedules < schedules_max && exploration.seen.size() < expected.size()) {
    const uint64_t seed = ++exploration.schedules;
    SPL_ASSIGN(model::Outcome outcome, run_loopback(program, seed));
    if (!expected.contains(outcome)) {
      return fail(Code::mismatch, "schedule ", seed, " has an outcome that is not allowed\n",
                  model::text_of(program, outcome));
    }
    exploration.seen.insert(std::move(outcome));
  }
  for (const model::Outcome& outcome : expected) {
    if (!exploration.seen.contains(outcome)) exploration.missing.insert(outcome);
  }
  return exploration;
}

}  // namespace spinloom::testbed
