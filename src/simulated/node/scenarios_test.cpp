// Every scenario under the simulated driver, compared with the loopback's trace: in order and with packets shuffled.
#include "portals/testbed/scenarios.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "portals/testbed/loopback_testbed.hpp"
#include "simulated/node/testing/profile.hpp"
#include "simulated/node/world.hpp"

#ifdef SPINLOOM_SCENARIO_HANDLERS

namespace spinloom::simulated {
namespace {

constexpr std::array<std::string_view, 6> handler_names{"exchange", "scatter", "gather", "drop", "fail", "fault"};

uint64_t test_seed() {
  const char* given = std::getenv("SPINLOOM_TEST_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 0);
}

// The limits of the loopback and of the simulation: small packets and few HPUs, so that units are contended.
nic::NicLimits scenario_limits() {
  nic::NicLimits limits;
  limits.payload_bytes = 128;
  limits.hpus = 4;
  limits.packet_buffer_bytes = 64 * 128;
  limits.nic_memory_bytes = 1 << 16;
  return limits;
}

class SimTestbed final : public testbed::Testbed {
 public:
  static std::unique_ptr<SimTestbed> create(uint32_t ranks, const Ordering& ordering, uint32_t slice_cycles,
                                            uint64_t packet_buffer_bytes = scenario_limits().packet_buffer_bytes,
                                            const std::optional<BridgeConfig>& bridge = {}) {
    std::unique_ptr<SimTestbed> bed(new SimTestbed);
    const nic::NicLimits limits = scenario_limits();
    bed->profile_ = test_profile();
    bed->profile_.memory.packet_buffer_bytes = static_cast<int64_t>(packet_buffer_bytes);
    bed->profile_.memory.state_bytes = static_cast<int64_t>(limits.nic_memory_bytes);
    for (const std::string_view name : handler_names) {
      auto loaded = testbed::load_scenario_image(SPINLOOM_SCENARIO_HANDLERS, name);
      SPL_ASSERT(loaded.ok(), loaded.error().message);
      bed->handlers_.push_back(loaded->handlers);
      bed->handlers_.back().image = static_cast<uint32_t>(bed->images_.size());
      bed->images_.push_back(std::move(loaded->image));
    }
    WorldOptions options;
    options.ranks = ranks;
    options.node = {limits.hpus, limits.payload_bytes, slice_cycles};
    options.ordering = ordering;
    options.bridge = bridge;
    auto world = World::create(bed->profile_, bed->images_, options);
    SPL_ASSERT(world.ok(), world.error().message);
    bed->world_ = std::move(*world);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      bed->interfaces_.push_back(std::make_unique<portals::Interface>(bed->world_->node(rank)));
    }
    return bed;
  }

  [[nodiscard]] uint32_t ranks() const override { return static_cast<uint32_t>(interfaces_.size()); }
  [[nodiscard]] portals::Interface& rank(uint32_t rank) override { return *interfaces_.at(rank); }
  [[nodiscard]] const nic::Nic& nic(uint32_t rank) const override { return world_->node(rank).nic(); }
  [[nodiscard]] Result<testbed::TestHandlers> handlers(std::string_view name) override {
    for (size_t i = 0; i < handler_names.size(); ++i) {
      if (handler_names[i] == name) return handlers_[i];
    }
    return fail(Code::invalid, "no scenario handler ", name);
  }
  [[nodiscard]] Status settle() override {
    world_->drain();
    return {};
  }
  [[nodiscard]] Time now() const { return world_->node(0).now(); }

 private:
  SimTestbed() = default;

  Profile profile_;
  std::vector<hpu::Image> images_;
  std::vector<testbed::TestHandlers> handlers_;
  std::unique_ptr<World> world_;
  std::vector<std::unique_ptr<portals::Interface>> interfaces_;
};

std::string loopback_trace(const testbed::Scenario& scenario, uint64_t seed) {
  auto bed = testbed::LoopbackTestbed::create(scenario.ranks, scenario_limits(), {});
  SPL_ASSERT(bed.ok(), bed.error().message);
  const auto trace = scenario.run(**bed, seed);
  SPL_ASSERT(trace.ok(), trace.error().message);
  return *trace;
}

class SimScenarios : public testing::TestWithParam<testbed::Scenario> {};

TEST_P(SimScenarios, AgreesWithLoopback) {
  const testbed::Scenario& scenario = GetParam();
  const auto bed = SimTestbed::create(scenario.ranks, {}, limits::slice_cycles);
  const auto trace = scenario.run(*bed, test_seed());
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_GT(bed->now(), 0_ps);
  if (scenario.tag == testbed::ScenarioTag::confluent) {
    EXPECT_EQ(*trace, loopback_trace(scenario, test_seed()));
  }
}

TEST_P(SimScenarios, HoldsOverABridge) {
  const testbed::Scenario& scenario = GetParam();
  for (const bool stores : {false, true}) {
    for (const uint32_t gateways : {1, 2}) {
      BridgeConfig bridge{.gateways = gateways, .stores = stores, .forward = 300'000_ps, .hold_max = 20'000'000_ps};
      for (uint32_t rank = 0; rank < scenario.ranks; ++rank) bridge.fabric.push_back(rank % 2);
      const auto bed = SimTestbed::create(scenario.ranks, {3, false, 5}, limits::slice_cycles,
                                          scenario_limits().packet_buffer_bytes, bridge);
      const auto trace = scenario.run(*bed, test_seed());
      ASSERT_TRUE(trace.ok()) << trace.error().message << ", stores " << stores << ", gateways " << gateways;
      if (scenario.tag == testbed::ScenarioTag::confluent) {
        EXPECT_EQ(*trace, loopback_trace(scenario, test_seed()));
      }
    }
  }
}

TEST_P(SimScenarios, HoldsWithShuffledPackets) {
  const testbed::Scenario& scenario = GetParam();
  const std::string expected = loopback_trace(scenario, 1);
  for (uint64_t seed = test_seed(); seed < test_seed() + 20; ++seed) {
    const std::string replay = text("replay: SPINLOOM_TEST_SEED=", seed,
                                    " spinloom_sim_test --gtest_filter=*HoldsWithShuffledPackets/", scenario.name);
    const auto bed = SimTestbed::create(scenario.ranks, {6, true, seed}, limits::slice_cycles);
    const auto trace = scenario.run(*bed, 1);
    ASSERT_TRUE(trace.ok()) << trace.error().message << "; " << replay;
    if (scenario.tag == testbed::ScenarioTag::confluent) {
      ASSERT_EQ(*trace, expected) << replay;
    }
  }
}

// Room for two packets, which come in any order: headers wait behind packets that came ahead of them.
TEST_P(SimScenarios, HoldsWithHardlyAnyPacketBuffer) {
  const testbed::Scenario& scenario = GetParam();
  const std::string expected = loopback_trace(scenario, 1);
  for (uint64_t seed = test_seed(); seed < test_seed() + 20; ++seed) {
    const std::string replay =
        text("replay: SPINLOOM_TEST_SEED=", seed, " spinloom_sim_test --gtest_filter=*HardlyAny*/", scenario.name);
    const auto bed = SimTestbed::create(scenario.ranks, {6, true, seed}, limits::slice_cycles, 2 * 128);
    const auto trace = scenario.run(*bed, 1);
    ASSERT_TRUE(trace.ok()) << trace.error().message << "; " << replay;
    if (scenario.tag == testbed::ScenarioTag::confluent) {
      ASSERT_EQ(*trace, expected) << replay;
    }
  }
}

TEST_P(SimScenarios, TakesTheSameTimeForEverySlice) {
  const testbed::Scenario& scenario = GetParam();
  Time first{};
  for (const uint32_t slice : {64u, 256u, 1024u}) {
    const auto bed = SimTestbed::create(scenario.ranks, {}, slice);
    ASSERT_TRUE(scenario.run(*bed, test_seed()).ok());
    if (slice == 64) first = bed->now();
    EXPECT_EQ(bed->now(), first) << "slice of " << slice << " cycles";
  }
}

INSTANTIATE_TEST_SUITE_P(Sim, SimScenarios, testing::ValuesIn(testbed::scenarios().begin(), testbed::scenarios().end()),
                         [](const auto& scenario) { return std::string(scenario.param.name); });

}  // namespace
}  // namespace spinloom::simulated

#else

TEST(SimScenarios, NeedHandlerImages) {
  GTEST_SKIP() << "built without SPINLOOM_HANDLERS: there are no RV32 images of the scenario handlers";
}

#endif
