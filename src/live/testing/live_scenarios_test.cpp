// Every scenario over the live driver: one copy, a copy by both ends, or two copies; in packets or whole; polling or
// asleep.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "live/testing/live_testbed.hpp"
#include "portals/testbed/scenario_ways.hpp"

namespace spinloom::live {
namespace {

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
  DirectMode direct = DirectMode::automatic;
};

Result<std::unique_ptr<testbed::Testbed>> made(const Way& way, uint32_t ranks) {
  nic::NicLimits limits = testbed::scenario_limits();
  limits.transfer_bytes = way.transfer_bytes;
  limits.at_once_bytes = way.at_once_bytes;
  ShmOptions options;
  options.copy_mode = way.copy;
  options.lend_from_bytes = way.lend_from_bytes;
  options.help_from_bytes = way.help_from_bytes;
  options.direct = way.direct;
  // The handlers of scenarios are RV32 images here.
  SPL_ASSIGN(auto images, testbed::image_handlers());
  SPL_ASSIGN(auto bed,
             LiveTestbed::create(ranks, limits, options, way.spin, std::move(images), way.over, way.bridging));
  return std::unique_ptr<testbed::Testbed>(std::move(bed));
}

Status refuses_nothing(testbed::Testbed& bed) {
  const uint64_t refused = static_cast<LiveTestbed&>(bed).refused();
  if (refused == 0) return {};
  return fail(Code::mismatch, "the ranks have refused ", refused, " packets");
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

std::vector<testbed::ScenarioWay> live_ways() {
  std::vector<testbed::ScenarioWay> found;
  for (const Way& way :
       {Way{"Lent", CopyMode::single, 64, 1 << 30, 100, polling},
        Way{"LentAsleep", CopyMode::single, 1, 1 << 30, 0, asleep},
        Way{"Helped", CopyMode::single, 1, 1 << 30, 0, polling, 6},
        Way{"Twice", CopyMode::twice, 64, 1 << 30, 0, asleep},
        Way{"Direct",
            CopyMode::automatic,
            64,
            1 << 30,
            16,
            polling,
            ShmOptions{}.help_from_bytes,
            LiveTestbed::Over::shared_memory,
            {},
            DirectMode::always},
        Way{"InPackets", CopyMode::automatic, 64, 128, 16, polling}, over("Udp", LiveTestbed::Over::udp),
        over("LossyUdp", LiveTestbed::Over::lossy_udp), over("Fabric", LiveTestbed::Over::fabric),
        over("FabricInPieces", LiveTestbed::Over::fabric_in_pieces),
        over("FabricDisturbed", LiveTestbed::Over::fabric_disturbed),
        bridged("Bridge", LiveTestbed::Over::shared_memory, 1, false),
        bridged("BridgeStores", LiveTestbed::Over::udp, 1, true),
        bridged("LossyBridge", LiveTestbed::Over::lossy_udp, 1, false),
        bridged("BridgeOfFabrics", LiveTestbed::Over::fabric_in_pieces, 1, false),
        bridged("ChainOfBridges", LiveTestbed::Over::shared_memory, 3, true),
        bridged("LossyChainOfBridges", LiveTestbed::Over::lossy_udp, 2, false)}) {
    found.push_back({way.name, [way](uint32_t ranks, uint64_t) { return made(way, ranks); }, 1, refuses_nothing});
  }
  return found;
}

SPINLOOM_SCENARIO_SUITE(LiveScenarios, live_ways());

}  // namespace
}  // namespace spinloom::live
