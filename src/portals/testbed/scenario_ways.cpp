#include "portals/testbed/scenario_ways.hpp"

#include <cstdlib>

#include "base/text.hpp"

namespace spinloom::testbed {

nic::NicLimits scenario_limits() {
  nic::NicLimits limits;
  limits.payload_bytes = 128;
  limits.hpus = 4;
  limits.packet_buffer_bytes = 64 * 128;
  limits.nic_memory_bytes = 1 << 16;
  return limits;
}

uint64_t first_seed() {
  const char* given = std::getenv("SPINLOOM_TEST_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 0);
}

Result<std::unique_ptr<ScenarioHandlers>> image_handlers() {
#ifdef SPINLOOM_SCENARIO_HANDLERS
  SPL_ASSIGN(auto images, ImageScenarioHandlers::create(SPINLOOM_SCENARIO_HANDLERS));
  return std::unique_ptr<ScenarioHandlers>(std::move(images));
#else
  return fail(Code::unsupported, "built without SPINLOOM_HANDLERS: there are no RV32 images of the scenario handlers");
#endif
}

Status hold(const Scenario& scenario, const ScenarioWay& way) {
  constexpr uint64_t content_seed = 1;
  SPL_ASSIGN(const auto loopback, LoopbackTestbed::create(scenario.ranks, scenario_limits(), {}));
  SPL_ASSIGN(const std::string expected, scenario.run(*loopback, content_seed));
  const uint64_t first = first_seed();
  for (uint64_t seed = first; seed < first + way.seeds; ++seed) {
    const auto failed = [&](const Error& error) {
      return fail(error.code, scenario.name, " over ", way.name, ": ", error.message,
                  "; replay: SPINLOOM_TEST_SEED=", seed, " with --gtest_filter=*", scenario.name, "_", way.name);
    };
    auto bed = way.make(scenario.ranks, seed);
    if (!bed.ok()) return failed(bed.error());
    const auto trace = scenario.run(**bed, content_seed);
    if (!trace.ok()) return failed(trace.error());
    if (scenario.tag == ScenarioTag::confluent && *trace != expected) {
      return failed(fail(Code::mismatch, "the trace is\n", *trace, "and over the loopback driver\n", expected));
    }
    if (!way.check) continue;
    const Status checked = way.check(**bed);
    if (!checked.ok()) return failed(checked.error());
  }
  return {};
}

}  // namespace spinloom::testbed
