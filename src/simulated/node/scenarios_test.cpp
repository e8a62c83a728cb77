// Every scenario under the simulated driver: in order, with packets shuffled, short of room, and over bridges.
#include <gtest/gtest.h>

#include <array>

#include "portals/testbed/loopback_testbed.hpp"
#include "portals/testbed/scenario_ways.hpp"
#include "simulated/node/testing/profile.hpp"
#include "simulated/node/world.hpp"

#ifdef SPINLOOM_SCENARIO_HANDLERS

namespace spinloom::simulated {
namespace {

constexpr std::array<std::string_view, 6> handler_names{"exchange", "scatter", "gather", "drop", "fail", "fault"};

using testbed::scenario_limits;

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

using Bed = Result<std::unique_ptr<testbed::Testbed>>;

Bed simulated(uint32_t ranks, const Ordering& ordering,
              uint64_t packet_buffer_bytes = scenario_limits().packet_buffer_bytes,
              const std::optional<BridgeConfig>& bridge = {}) {
  return std::unique_ptr<testbed::Testbed>(
      SimTestbed::create(ranks, ordering, limits::slice_cycles, packet_buffer_bytes, bridge));
}

testbed::ScenarioWay over_a_bridge(const char* name, bool stores, uint32_t gateways) {
  return {name, [stores, gateways](uint32_t ranks, uint64_t) {
            BridgeConfig bridge{
                .gateways = gateways, .stores = stores, .forward = 300'000_ps, .hold_max = 20'000'000_ps};
            for (uint32_t rank = 0; rank < ranks; ++rank) bridge.fabric.push_back(rank % 2);
            return simulated(ranks, {3, false, 5}, scenario_limits().packet_buffer_bytes, bridge);
          }};
}

std::vector<testbed::ScenarioWay> simulated_ways() {
  const auto takes_time = [](testbed::Testbed& bed) -> Status {
    if (static_cast<SimTestbed&>(bed).now() > 0_ps) return {};
    return fail(Code::mismatch, "no modelled time has passed");
  };
  return {
      {"InOrder", [](uint32_t ranks, uint64_t) { return simulated(ranks, {}); }, 1, takes_time},
      {"Shuffled", [](uint32_t ranks, uint64_t seed) { return simulated(ranks, {6, true, seed}); }, 20},
      // Room for two packets, which come in any order: headers wait behind packets that came ahead of them.
      {"ShuffledWithHardlyAnyPacketBuffer",
       [](uint32_t ranks, uint64_t seed) { return simulated(ranks, {6, true, seed}, 2 * 128); }, 20},
      over_a_bridge("Bridge", false, 1),
      over_a_bridge("BridgeStores", true, 1),
      over_a_bridge("Bridges", false, 2),
      over_a_bridge("BridgesStore", true, 2),
  };
}

SPINLOOM_SCENARIO_SUITE(Simulated, simulated_ways());

class SimScenarios : public testing::TestWithParam<testbed::Scenario> {};

TEST_P(SimScenarios, TakesTheSameTimeForEverySlice) {
  const testbed::Scenario& scenario = GetParam();
  Time first{};
  for (const uint32_t slice : {64u, 256u, 1024u}) {
    const auto bed = SimTestbed::create(scenario.ranks, {}, slice);
    ASSERT_TRUE(scenario.run(*bed, testbed::first_seed()).ok());
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
