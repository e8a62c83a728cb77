// Every scenario over the live driver: one copy, a copy by both ends, or two copies; in packets or whole; polling or
// asleep.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>

#include "live/testing/live_testbed.hpp"
#include "portals/testbed/loopback_testbed.hpp"
#include "portals/testbed/scenarios.hpp"

namespace spinloom::live {
namespace {

using testbed::Scenario;
using testbed::ScenarioTag;

struct Way {
  const char* name;
  CopyMode copy;
  uint64_t lend_from_bytes;
  uint64_t transfer_bytes;
  uint32_t at_once_bytes;
  Time spin;
  uint64_t help_from_bytes = ShmOptions{}.help_from_bytes;
  LiveTestbed::Over over = LiveTestbed::Over::shared_memory;
  Bridging bridging = {};
};

nic::NicLimits limits_of(const Way& way) {
  nic::NicLimits limits;
  limits.payload_bytes = 128;
  limits.transfer_bytes = way.transfer_bytes;
  limits.at_once_bytes = way.at_once_bytes;
  limits.hpus = 4;
  limits.packet_buffer_bytes = 64 * 128;
  limits.nic_memory_bytes = 1 << 16;
  return limits;
}

// The handlers of all other scenarios are RV32 images.
std::shared_ptr<testbed::ScenarioHandlers> handlers() {
#ifdef SPINLOOM_SCENARIO_HANDLERS
  auto made = testbed::ImageScenarioHandlers::create(SPINLOOM_SCENARIO_HANDLERS);
  SPL_ASSERT(made.ok(), made.error().message);
  return std::move(*made);
#else
  return nullptr;
#endif
}

class LiveScenarios : public testing::TestWithParam<std::tuple<Scenario, Way>> {};

TEST_P(LiveScenarios, GiveTheTraceOfTheLoopbackDriver) {
  const auto& [scenario, way] = GetParam();
  const nic::NicLimits limits = limits_of(way);
  nic::NicLimits packets = limits;
  packets.transfer_bytes = 0;  // the loopback driver does not cut packets for handlers
  packets.at_once_bytes = 0;
  auto loopback = testbed::LoopbackTestbed::create(scenario.ranks, packets, {});
  ASSERT_TRUE(loopback.ok()) << loopback.error().message;
  const auto expected = scenario.run(**loopback, 1);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  ShmOptions options;
  options.copy_mode = way.copy;
  options.lend_from_bytes = way.lend_from_bytes;
  options.help_from_bytes = way.help_from_bytes;
  auto bed = LiveTestbed::create(scenario.ranks, limits, options, way.spin, handlers(), way.over, way.bridging);
  ASSERT_TRUE(bed.ok()) << bed.error().message;
  const auto trace = scenario.run(**bed, 1);
  if (!trace.ok() && trace.error().code == Code::unsupported) {
    GTEST_SKIP() << "built without SPINLOOM_HANDLERS: there are no RV32 images of the scenario handlers";
  }
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  if (scenario.tag == ScenarioTag::confluent) {
    EXPECT_EQ(*trace, *expected);
  }
  EXPECT_EQ((*bed)->refused(), 0u);
}

constexpr Time asleep{}, polling{20'000'000};

Way over(const char* name, LiveTestbed::Over over) {
  return {name, CopyMode::automatic, 64, 1 << 30, 100, polling, 0, over};
}

// Through gateways: with small windows and pieces, so that credit runs out again and again.
Way bridged(const char* name, LiveTestbed::Over below, uint32_t gateways, bool stores) {
  Way way = over(name, below);
  way.bridging.gateways = gateways;
  way.bridging.options.stores = stores;
  way.bridging.options.piece_bytes = 128;  // the packets of handlers
  way.bridging.options.window_frames = 8;
  way.bridging.options.window_bytes = 400;
  return way;
}

INSTANTIATE_TEST_SUITE_P(
    Threads, LiveScenarios,
    testing::Combine(testing::ValuesIn(testbed::scenarios().begin(), testbed::scenarios().end()),
                     testing::Values(Way{"Lent", CopyMode::single, 64, 1 << 30, 100, polling},
                                     Way{"LentAsleep", CopyMode::single, 1, 1 << 30, 0, asleep},
                                     Way{"Helped", CopyMode::single, 1, 1 << 30, 0, polling, 6},
                                     Way{"Twice", CopyMode::twice, 64, 1 << 30, 0, asleep},
                                     Way{"InPackets", CopyMode::automatic, 64, 128, 16, polling},
                                     over("Udp", LiveTestbed::Over::udp),
                                     over("LossyUdp", LiveTestbed::Over::lossy_udp),
                                     over("Fabric", LiveTestbed::Over::fabric),
                                     over("FabricInPieces", LiveTestbed::Over::fabric_in_pieces),
                                     over("FabricDisturbed", LiveTestbed::Over::fabric_disturbed),
                                     bridged("Bridge", LiveTestbed::Over::shared_memory, 1, false),
                                     bridged("BridgeStores", LiveTestbed::Over::udp, 1, true),
                                     bridged("LossyBridge", LiveTestbed::Over::lossy_udp, 1, false),
                                     bridged("BridgeOfFabrics", LiveTestbed::Over::fabric_in_pieces, 1, false),
                                     bridged("ChainOfBridges", LiveTestbed::Over::shared_memory, 3, true),
                                     bridged("LossyChainOfBridges", LiveTestbed::Over::lossy_udp, 2, false))),
    [](const auto& all) { return std::string(std::get<0>(all.param).name) + "_" + std::get<1>(all.param).name; });

}  // namespace
}  // namespace spinloom::live
