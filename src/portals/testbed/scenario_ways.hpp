// ScenarioWays - every scenario over every way to drive NICs: one suite for all drivers.
//
// Contract: a way makes a testbed. hold() runs a scenario over it, for each of the way's seeds, and returns an Error
//   unless the scenario ends well, its trace is that of the loopback driver where it is confluent, and the way's own
//   check holds. SPINLOOM_SCENARIO_SUITE(Name, ways) makes tests of that: a new driver needs a file with its ways and
//   this line. Code::unsupported: there are no RV32 images of the scenario handlers, and the test is skipped.
// Invariants: (1) SPINLOOM_TEST_SEED is the first seed; an Error says which seed replays it.
// Threads: one owner. Time: that of the driver.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "portals/testbed/loopback_testbed.hpp"
#include "portals/testbed/scenarios.hpp"

namespace spinloom::testbed {

struct ScenarioWay {
  std::string name;
  std::function<Result<std::unique_ptr<Testbed>>(uint32_t ranks, uint64_t seed)> make;
  uint64_t seeds = 1;
  std::function<Status(Testbed&)> check = {};  // looks at the testbed after each run
};

// Small packets and few HPUs, so that units are contended.
[[nodiscard]] nic::NicLimits scenario_limits();
[[nodiscard]] uint64_t first_seed();
[[nodiscard]] Result<std::unique_ptr<ScenarioHandlers>> image_handlers();
[[nodiscard]] Status hold(const Scenario& scenario, const ScenarioWay& way);

}  // namespace spinloom::testbed

#define SPINLOOM_SCENARIO_SUITE(Name, ways)                                                                        \
  class Name                                                                                                       \
      : public testing::TestWithParam<std::tuple<spinloom::testbed::Scenario, spinloom::testbed::ScenarioWay>> {}; \
  TEST_P(Name, GiveTheTraceOfTheLoopbackDriver) {                                                                  \
    const spinloom::Status held = spinloom::testbed::hold(std::get<0>(GetParam()), std::get<1>(GetParam()));       \
    if (!held.ok() && held.error().code == spinloom::Code::unsupported) GTEST_SKIP() << held.error().message;      \
    ASSERT_TRUE(held.ok()) << held.error().message;                                                                \
  }                                                                                                                \
  INSTANTIATE_TEST_SUITE_P(                                                                                        \
      Scenarios, Name,                                                                                             \
      testing::Combine(                                                                                            \
          testing::ValuesIn(spinloom::testbed::scenarios().begin(), spinloom::testbed::scenarios().end()),         \
          testing::ValuesIn(ways)),                                                                                \
      [](const auto& of) { return std::string(std::get<0>(of.param).name) + "_" + std::get<1>(of.param).name; })
