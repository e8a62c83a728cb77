// spinloom._core: deterministic simulation testing.
#include <nanobind/stl/vector.h>

#include <cstdio>

#include "app/python/bindings_support.hpp"
#include "torture/run.hpp"

namespace spinloom::app {
namespace {

// The outcome of a range of seeds. The least numbers are those of runs without a violation.
struct SeedTotals {
  uint64_t messages = 0;
  uint64_t messages_min = UINT64_MAX;
  uint64_t faults_min = UINT64_MAX;
  uint64_t exchanges = 0;
  uint64_t steps = 0;
  torture::FaultCounts faults{};
  std::vector<std::pair<uint64_t, std::string>> violations;
  std::vector<uint64_t> hashes;
};

SeedTotals run_seeds(const torture::Config& config, uint64_t first, uint64_t last, bool trace) {
  SeedTotals totals;
  for (uint64_t seed = first; seed <= last; ++seed) {
    const torture::Outcome outcome = torture::run(config, seed, trace);
    uint64_t faults = 0;
    for (size_t i = 0; i < torture::fault_count; ++i) {
      totals.faults[i] += outcome.faults[i];
      faults += outcome.faults[i];
    }
    totals.messages += outcome.messages;
    totals.exchanges += outcome.exchanges;
    totals.steps += outcome.steps;
    totals.hashes.push_back(outcome.hash);
    if (!outcome.violation.empty()) {
      totals.violations.emplace_back(seed, outcome.violation);
      continue;
    }
    totals.messages_min = std::min(totals.messages_min, outcome.messages);
    totals.faults_min = std::min(totals.faults_min, faults);
  }
  return totals;
}

nb::dict run_torture(const nb::dict& numbers, uint64_t first, uint64_t last, bool trace) {
  torture::Config config;
  for (const auto& [key, value] : numbers) unwrap(config.set(nb::cast<std::string>(key), nb::cast<int64_t>(value)));
  unwrap(torture::check(config));
  const SeedTotals totals = [&] {
    const nb::gil_scoped_release release;
    SeedTotals counted = run_seeds(config, first, last, trace);
    std::fflush(stdout);  // the trace is printed now
    return counted;
  }();
  nb::dict out;
  out["runs"] = totals.hashes.size();
  out["messages"] = totals.messages;
  out["exchanges"] = totals.exchanges;
  out["steps"] = totals.steps;
  out["messages_min"] = totals.messages_min;
  out["faults_min"] = totals.faults_min;
  out["hashes"] = nb::cast(totals.hashes);
  nb::dict faults;
  for (size_t i = 0; i < torture::fault_count; ++i) {
    faults[torture::name_of(static_cast<torture::Fault>(i))] = totals.faults[i];
  }
  out["faults"] = faults;
  nb::list violations;
  for (const auto& [seed, sentence] : totals.violations) violations.append(nb::make_tuple(seed, sentence));
  out["violations"] = violations;
  return out;
}

}  // namespace

void bind_torture(nb::module_& module) {
  module.def("run_torture", &run_torture, nb::arg("config"), nb::arg("first"), nb::arg("last"),
             nb::arg("trace") = false,
             "Runs the seeds first to last of one scenario; config has the names of torture::Config.");
}

}  // namespace spinloom::app
