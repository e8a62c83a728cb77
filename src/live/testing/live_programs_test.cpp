// Random programs and long histories over the live driver, judged by the model of Portals 4 (portals/model).
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "base/testing/seeds.hpp"
#include "live/testing/live_testbed.hpp"
#include "portals/model/grammar.hpp"
#include "portals/model/machine.hpp"
#include "portals/model/text.hpp"
#include "portals/testbed/explorer.hpp"
#include "portals/testbed/judge.hpp"

namespace spinloom::live {
namespace {

struct Way {
  const char* name;
  LiveTestbed::Over over = LiveTestbed::Over::shared_memory;
  testbed::Callers callers = testbed::Callers::one_thread;
  uint32_t gateways = 0;
  DirectMode direct = DirectMode::never;
};

class LivePrograms : public testing::TestWithParam<Way> {
 protected:
  void TearDown() override { EXPECT_EQ(judge_.report(), ""); }
  static std::unique_ptr<LiveTestbed> testbed_of(const Way& way,
                                                 LiveTestbed::Patience patience = LiveTestbed::Patience::usual) {
    nic::NicLimits limits;
    limits.payload_bytes = 128;
    limits.transfer_bytes = 1 << 30;
    limits.packet_buffer_bytes = 64 * 128;
    limits.nic_memory_bytes = 1 << 16;
    ShmOptions options;
    options.lend_from_bytes = 8;
    options.direct = way.direct;
    Bridging bridging;
    bridging.gateways = way.gateways;
    auto bed = LiveTestbed::create(2, limits, options, Time{20'000'000}, nullptr, way.over, bridging, patience);
    EXPECT_TRUE(bed.ok()) << bed.error().message;
    return bed.ok() ? std::move(*bed) : nullptr;
  }

  // Runs a program and judges its outcome. Programs give all back, so one testbed runs many.
  void judge(model::Program program, LiveTestbed& bed, Random& random) {
    for (model::RankProgram& rank : program.ranks) {  // the driver tells whose process a peer is
      rank.setup.user = static_cast<uint16_t>(geteuid());
    }
    const auto outcome = testbed::run_program(program, bed, random, GetParam().callers);
    ASSERT_TRUE(outcome.ok()) << outcome.error().message << '\n' << model::text_of(program);
    ASSERT_EQ(judge_.complaint(program, *outcome), "");
  }

 private:
  testbed::Judge judge_;
};

TEST_P(LivePrograms, DoWhatTheModelAllows) {
  const auto bed = testbed_of(GetParam());
  ASSERT_NE(bed, nullptr);
  for_seeds(120, [&](Random& random) {
    judge(model::random_program(random, 2, static_cast<uint16_t>(2 + random.below(4))), *bed, random);
  });
}

TEST_P(LivePrograms, HaveHistoriesThatTheModelAllows) {
  const auto bed = testbed_of(GetParam());
  ASSERT_NE(bed, nullptr);
  for_seeds(40, [&](Random& random) {
    judge(model::random_history(random, 2, static_cast<uint16_t>(1 + random.below(4)), 8), *bed, random);
  });
}

// Where ranks hear of a death by silence, a program takes half a second.
TEST_P(LivePrograms, SeeOfADeathWhatTheModelAllows) {
  const bool hears_at_once = GetParam().over == LiveTestbed::Over::shared_memory;
  for_seeds(hears_at_once ? 40 : 3, [&](Random& random) {
    model::Program program = model::random_history(random, 2, static_cast<uint16_t>(2 + random.below(3)),
                                                   static_cast<uint16_t>(1 + random.below(2)));
    if (model::Traits(program).has_races) return;  // the dead rank's memory would be read
    program.killed = static_cast<uint16_t>(random.below(2));
    const auto bed = testbed_of(GetParam(), LiveTestbed::Patience::short_for_deaths);
    ASSERT_NE(bed, nullptr);
    judge(program, *bed, random);
  });
}

using Over = LiveTestbed::Over;
constexpr auto threads = testbed::Callers::thread_each;
constexpr auto one = testbed::Callers::one_thread;
INSTANTIATE_TEST_SUITE_P(Drivers, LivePrograms,
                         testing::Values(Way{"SharedMemory"}, Way{"SharedMemoryThreads", Over::shared_memory, threads},
                                         Way{"Direct", Over::shared_memory, one, 0, DirectMode::always},
                                         Way{"DirectThreads", Over::shared_memory, threads, 0, DirectMode::always},
                                         Way{"Udp", Over::udp}, Way{"UdpThreads", Over::udp, threads},
                                         Way{"LossyUdpThreads", Over::lossy_udp, threads}, Way{"Fabric", Over::fabric},
                                         Way{"FabricThreads", Over::fabric, threads},
                                         Way{"FabricInPieces", Over::fabric_in_pieces},
                                         Way{"FabricDisturbedThreads", Over::fabric_disturbed, threads},
                                         Way{"Bridge", Over::shared_memory, one, 1},
                                         Way{"BridgeThreads", Over::shared_memory, threads, 1}),
                         [](const auto& all) { return std::string(all.param.name); });

}  // namespace
}  // namespace spinloom::live
