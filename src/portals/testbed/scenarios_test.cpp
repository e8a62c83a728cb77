// Every scenario over the loopback driver: in order, and racy with many seeds.
#include "portals/testbed/scenarios.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "portals/testbed/loopback_testbed.hpp"

namespace spinloom::testbed {
namespace {

uint64_t test_seed() {
  const char* given = std::getenv("SPINLOOM_TEST_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 0);
}

nic::NicLimits scenario_limits() {
  nic::NicLimits limits;
  limits.payload_bytes = 128;
  limits.hpus = 4;
  limits.packet_buffer_bytes = 64 * 128;
  limits.nic_memory_bytes = 1 << 16;
  return limits;
}

struct Ran {
  Result<std::string> trace = std::string();
  uint64_t overtakes = 0;
  uint64_t buffer_peak = 0;
};

Ran run(const Scenario& scenario, uint64_t seed, std::optional<uint64_t> racy_seed, const nic::NicLimits& limits,
        std::unique_ptr<ScenarioHandlers> handlers = std::make_unique<NativeScenarioHandlers>()) {
  auto bed = LoopbackTestbed::create(scenario.ranks, limits, racy_seed, std::move(handlers));
  if (!bed) return {bed.error(), 0, 0};
  Ran ran;
  ran.trace = scenario.run(**bed, seed);
  ran.overtakes = (*bed)->loopback().overtakes();
  ran.buffer_peak = (*bed)->nic(0).state().packet_buffer_peak;
  return ran;
}

class Scenarios : public testing::TestWithParam<Scenario> {};

TEST_P(Scenarios, InOrder) {
  const Ran ran = run(GetParam(), test_seed(), {}, scenario_limits());
  ASSERT_TRUE(ran.trace.ok()) << ran.trace.error().message;
  EXPECT_FALSE(ran.trace->empty());
}

TEST_P(Scenarios, RacyWithManySeeds) {
  const Scenario& scenario = GetParam();
  const uint64_t first = test_seed();
  const Ran expected = run(scenario, first, {}, scenario_limits());
  ASSERT_TRUE(expected.trace.ok()) << expected.trace.error().message;
  uint64_t overtakes = 0;
  for (uint64_t racy_seed = first; racy_seed < first + 60; ++racy_seed) {
    const std::string replay = text("replay: SPINLOOM_TEST_SEED=", racy_seed,
                                    " spinloom_testbed_test --gtest_filter=*RacyWithManySeeds/", scenario.name);
    const Ran ran = run(scenario, first, racy_seed, scenario_limits());
    ASSERT_TRUE(ran.trace.ok()) << ran.trace.error().message << "; " << replay;
    if (scenario.tag == ScenarioTag::confluent) {
      ASSERT_EQ(*ran.trace, *expected.trace) << replay;
    }
    overtakes += ran.overtakes;
  }
  EXPECT_GT(overtakes, 1000u) << "racy runs must really reorder";
}

TEST_P(Scenarios, WithHardlyAnyPacketBuffer) {
  const Scenario& scenario = GetParam();
  nic::NicLimits limits = scenario_limits();
  limits.packet_buffer_bytes = 2 * limits.payload_bytes;
  limits.hpus = 1;
  const Ran ran = run(scenario, test_seed(), {}, limits);
  ASSERT_TRUE(ran.trace.ok()) << ran.trace.error().message;
  EXPECT_LE(ran.buffer_peak, limits.packet_buffer_bytes);
  if (scenario.tag == ScenarioTag::confluent) {
    EXPECT_EQ(*ran.trace, *run(scenario, test_seed(), {}, scenario_limits()).trace);
  }
}

TEST_P(Scenarios, WithHandlersAsImages) {
#ifdef SPINLOOM_SCENARIO_HANDLERS
  const Scenario& scenario = GetParam();
  const auto images = [] {
    auto made = ImageScenarioHandlers::create(SPINLOOM_SCENARIO_HANDLERS);
    SPL_ASSERT(made.ok(), made.error().message);
    return std::move(*made);
  };
  const Ran native = run(scenario, test_seed(), {}, scenario_limits());
  const Ran in_order = run(scenario, test_seed(), {}, scenario_limits(), images());
  ASSERT_TRUE(in_order.trace.ok()) << in_order.trace.error().message;
  EXPECT_EQ(*in_order.trace, *native.trace);
  const Ran racy = run(scenario, test_seed(), test_seed(), scenario_limits(), images());
  ASSERT_TRUE(racy.trace.ok()) << racy.trace.error().message;
#else
  GTEST_SKIP() << "built without SPINLOOM_HANDLERS: there are no RV32 images of the scenario handlers";
#endif
}

INSTANTIATE_TEST_SUITE_P(Loopback, Scenarios, testing::ValuesIn(scenarios().begin(), scenarios().end()),
                         [](const auto& scenario) { return std::string(scenario.param.name); });

TEST(ScenarioSet, RacyRunsAreReplayableAndDiffer) {
  const Scenario& scenario = scenarios()[3];
  ASSERT_EQ(scenario.tag, ScenarioTag::racy);
  std::set<std::string> traces;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Ran once = run(scenario, 1, seed, scenario_limits());
    const Ran again = run(scenario, 1, seed, scenario_limits());
    ASSERT_TRUE(once.trace.ok()) << once.trace.error().message;
    EXPECT_EQ(*once.trace, *again.trace);
    traces.insert(*once.trace);
  }
  EXPECT_GT(traces.size(), 1u) << "ten seeds, one outcome: this scenario is not racy";
}

}  // namespace
}  // namespace spinloom::testbed
