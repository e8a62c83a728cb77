// Every scenario over the loopback driver: in order, racy with many seeds, short of room, with handlers as images.
#include <gtest/gtest.h>

#include <set>

#include "portals/testbed/loopback_testbed.hpp"
#include "portals/testbed/scenario_ways.hpp"

namespace spinloom::testbed {
namespace {

using Bed = Result<std::unique_ptr<Testbed>>;

Bed loopback(uint32_t ranks, std::optional<uint64_t> racy_seed, const nic::NicLimits& limits = scenario_limits()) {
  SPL_ASSIGN(auto bed, LoopbackTestbed::create(ranks, limits, racy_seed));
  return std::unique_ptr<Testbed>(std::move(bed));
}

Bed with_images(uint32_t ranks, std::optional<uint64_t> racy_seed) {
  SPL_ASSIGN(auto images, image_handlers());
  SPL_ASSIGN(auto bed, LoopbackTestbed::create(ranks, scenario_limits(), racy_seed, std::move(images)));
  return std::unique_ptr<Testbed>(std::move(bed));
}

nic::NicLimits short_of_room() {
  nic::NicLimits limits = scenario_limits();
  limits.packet_buffer_bytes = 2 * limits.payload_bytes;
  limits.hpus = 1;
  return limits;
}

std::vector<ScenarioWay> loopback_ways() {
  return {
      {"InOrder", [](uint32_t ranks, uint64_t) { return loopback(ranks, {}); }},
      {"Racy", [](uint32_t ranks, uint64_t seed) { return loopback(ranks, seed); }, 60},
      {"WithHardlyAnyPacketBuffer", [](uint32_t ranks, uint64_t) { return loopback(ranks, {}, short_of_room()); }, 1,
       [](Testbed& bed) -> Status {
         const uint64_t peak = bed.nic(0).state().packet_buffer_peak;
         if (peak <= short_of_room().packet_buffer_bytes) return {};
         return fail(Code::mismatch, "the packet buffer held ", peak, " B");
       }},
      {"HandlersAsImages", [](uint32_t ranks, uint64_t) { return with_images(ranks, {}); }},
      {"RacyHandlersAsImages", [](uint32_t ranks, uint64_t seed) { return with_images(ranks, seed); }},
  };
}

SPINLOOM_SCENARIO_SUITE(Loopback, loopback_ways());

TEST(ScenarioSet, RacyRunsAreReplayableReorderAndDiffer) {
  const Scenario& scenario = scenarios()[3];
  ASSERT_EQ(scenario.tag, ScenarioTag::racy);
  std::set<std::string> traces;
  uint64_t overtakes = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const auto run = [&] {
      const auto bed = LoopbackTestbed::create(scenario.ranks, scenario_limits(), seed);
      SPL_ASSERT(bed.ok(), bed.error().message);
      const auto trace = scenario.run(**bed, 1);
      SPL_ASSERT(trace.ok(), trace.error().message);
      overtakes += (*bed)->loopback().overtakes();
      return *trace;
    };
    const std::string once = run();
    EXPECT_EQ(once, run());
    traces.insert(once);
  }
  EXPECT_GT(overtakes, 300u) << "racy runs must really reorder";
  EXPECT_GT(traces.size(), 1u) << "ten seeds, one outcome: this scenario is not racy";
}

}  // namespace
}  // namespace spinloom::testbed
