#include "portals/testbed/explorer.hpp"

#include <memory>
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
  const uint64_t calls_of_eight = 1 + random.below(7);  // how often a rank calls, if one can
  for (;;) {
    std::vector<uint16_t> callers;
    for (uint16_t rank = 0; rank < program.ranks.size(); ++rank) {
      if (run->may_call(rank)) callers.push_back(rank);
    }
    if (!callers.empty() && random.chance(calls_of_eight, 8)) {
      SPL_TRY(run->call(callers[random.below(callers.size())]));
    } else if (!loopback->step() && callers.empty()) {
      break;
    }
  }
  SPL_TRY(loopback->run());
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
