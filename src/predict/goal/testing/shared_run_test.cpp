// Ranks of two fidelities in one run: the ends of the scale, the algebra of the seam, and one meaning.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <tuple>

#include "predict/goal/nics/fidelity.hpp"
#include "predict/goal/nics/nics.hpp"
#include "predict/goal/patterns/patterns.hpp"
#include "predict/goal/testing/random_schedules.hpp"
#include "predict/schedule/goal.hpp"
#include "simulated/node/testing/profile.hpp"

namespace spinloom::goal {
namespace {

using schedule::Schedule;

Sample sample_of(std::vector<bool> ranks) { return Sample(std::move(ranks)); }

class EachSample : public testing::TestWithParam<Fidelity> {
 protected:
  const simulated::Profile profile = simulated::test_profile();
  const Time byte = arrival_time(profile) + profile.link.switch_latency + profile.link.wire;
  Model model_of(uint64_t o_ps = 1'500'000, uint64_t S_bytes = 65535) const {
    return {.L_ps = static_cast<uint64_t>(byte.ps) + 900'000,
            .o_ps = o_ps,
            .g_ps = static_cast<uint64_t>(profile.link.gap.ps),
            .G = profile.link.byte_time,
            .S_bytes = S_bytes};
  }
  Outcome run_of(const std::string& goal, std::vector<bool> ranks, const Model& model) const {
    const auto made = schedule::read_goal(goal);
    EXPECT_TRUE(made) << made.error().message;
    const auto outcome = run_sample(GetParam(), profile, *made, model, sample_of(std::move(ranks)));
    EXPECT_TRUE(outcome) << outcome.error().message;
    return outcome ? *outcome : Outcome();
  }
};

TEST_P(EachSample, AByteTakesWhatItTakesAtMessageLevelFromThere) {
  // M -> F: c + L + c. The NIC of F does the last part of L: matching, memory, PCIe, event.
  const Model model = model_of();
  const std::string goal = "num_ranks 2\nrank 0 {\nsend 1b to 1\n}\nrank 1 {\nrecv 1b from 0\n}\n";
  EXPECT_EQ(run_of(goal, {false, true}, model).finish_ps[1], 2 * model.o_ps + model.L_ps);
  // F -> M: c + command + read + i + c, where L - i is what this profile's command and read would be.
  const simulated::Pcie pcie(profile);
  const int64_t leaves = pcie.write_duration(profile.pcie.event_bytes).ps + profile.host.command_latency.ps +
                         pcie.write_duration(0).ps + 2 * profile.pcie.latency.ps;
  EXPECT_EQ(run_of(goal, {true, false}, model).finish_ps[1], 2 * model.o_ps + static_cast<uint64_t>(leaves + byte.ps));
}

TEST_P(EachSample, BytesTakeTheReceivingNicAsTheyCome) {
  // F -> M, s bytes: the last one comes n G behind the first one, with n = s - 1, in packets as well.
  const Model model = model_of();
  const auto goal = [](uint64_t s) {
    return text("num_ranks 2\nrank 0 {\nsend ", s, "b to 1\n}\nrank 1 {\nrecv ", s, "b from 0\n}\n");
  };
  const uint64_t one = run_of(goal(1), {true, false}, model).finish_ps[1];
  for (const uint64_t s : {2, 2048, 2049, 10'000, 65'000}) {
    EXPECT_EQ(run_of(goal(s), {true, false}, model).finish_ps[1], one + static_cast<uint64_t>(model.G.ps_up(s - 1)));
  }
}

TEST_P(EachSample, AllOrNobodyIsTheFidelityItself) {
  for_seeds(60, [&](Random& random) {
    const Schedule schedule =
        test::random_schedule(random, random.between(1, 10), test::Sizes::usual, test::Words::all);
    const Model model = model_of(random.below(3) * 700'000, random.chance(1, 2) ? 4 : 65535);
    const auto nics = run_on(GetParam(), profile, schedule, model);
    const auto all =
        run_sample(GetParam(), profile, schedule, model, sample_of(std::vector<bool>(schedule.ranks(), true)));
    ASSERT_EQ(nics.ok(), all.ok());
    if (nics) {
      EXPECT_EQ(nics->finish_ps, all->finish_ps);
      EXPECT_EQ(nics->overhead_ps, all->overhead_ps);
    }
    const auto message = run(schedule, model);
    const auto nobody =
        run_sample(GetParam(), profile, schedule, model, sample_of(std::vector<bool>(schedule.ranks())));
    if (!nobody && nobody.error().code == Code::unsupported) return;
    ASSERT_EQ(message.ok(), nobody.ok()) << (message ? nobody.error().message : message.error().message);
    if (message) {
      EXPECT_EQ(message->finish_ps, nobody->finish_ps);
    } else {
      EXPECT_EQ(message.error().message, nobody.error().message);
    }
  });
}

TEST_P(EachSample, RandomSamplesMeanTheSame) {
  // Whatever crosses the seam: what completes at message level completes, and every byte is checked on its way.
  uint64_t complete = 0;
  uint64_t stalled = 0;
  std::map<std::tuple<bool, schedule::Kind, bool>, uint64_t> crossed;  // the key is: from NICs, kind, by rendezvous
  for_seeds(1200, [&](Random& random) {
    const Schedule schedule =
        test::random_schedule(random, random.between(1, 12), test::Sizes::usual, test::Words::all);
    const Model model = model_of(random.below(3) * 700'000, random.chance(1, 2) ? 4 : 65535);
    std::vector<bool> ranks;
    for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) ranks.push_back(random.chance(1, 2));
    const auto outcome = run_sample(GetParam(), profile, schedule, model, sample_of(ranks));
    if (!outcome && outcome.error().code == Code::unsupported) return;
    ASSERT_TRUE(outcome || outcome.error().code == Code::stalled) << outcome.error().message;
    for (uint32_t rank = 0; rank < schedule.ranks() && outcome; ++rank) {
      for (const schedule::Operation& operation : schedule.program(rank).operations) {
        const schedule::Shape& shape = schedule.shape(operation);
        if (shape.kind == schedule::Kind::receive || !schedule::has_peer(shape.kind)) continue;
        const bool is_long = shape.kind == schedule::Kind::send && shape.size > model.S_bytes;
        if (ranks[rank] != ranks[schedule.peer(rank, operation)]) ++crossed[{ranks[rank], shape.kind, is_long}];
      }
    }
    if (!test::is_determined(schedule)) return;
    const auto message = run(schedule, model);
    ASSERT_EQ(outcome.ok(), message.ok()) << (outcome ? message.error().message : outcome.error().message);
    ++(outcome ? complete : stalled);
    if (outcome) {
      EXPECT_EQ(outcome->compute_ps, message->compute_ps);
    }
  });
  if (std::getenv("SPINLOOM_TEST_SEED") != nullptr) return;
  EXPECT_GT(complete, 80);
  EXPECT_GT(stalled, 0);
  EXPECT_EQ(crossed.size(), 12) << "sends of both kinds, puts, gets, atomics and fetching ones, each way";
  for (const auto& [what, count] : crossed) EXPECT_GT(count, 5);
}

TEST_P(EachSample, PatternsEndWithinWhatFidelitiesDiffer) {
  for (const char* const name : {"dissemination", "binomial_broadcast", "pairwise_exchange", "ring_allreduce"}) {
    const auto schedule = make_pattern(name, 16, 8);
    ASSERT_TRUE(schedule);
    std::vector<bool> ranks(16);
    ranks[0] = ranks[5] = ranks[6] = true;
    const auto outcome = run_sample(GetParam(), profile, *schedule, model_of(), sample_of(ranks));
    ASSERT_TRUE(outcome) << outcome.error().message;
  }
}

TEST_P(EachSample, WhatItCannotDoIsAnError) {
  const auto schedule = make_pattern("dissemination", 4, 8);
  Model model = model_of();
  model.L_ps = 10;
  const auto brief = run_sample(GetParam(), profile, *schedule, model, sample_of({true, false, false, false}));
  ASSERT_FALSE(brief);
  EXPECT_NE(brief.error().message.find("leave L to the profile"), std::string::npos);
  model = model_of();
  model.network = network::Config{};
  const auto far = run_sample(GetParam(), profile, *schedule, model, sample_of({true, false, false, false}));
  ASSERT_FALSE(far);
  EXPECT_NE(far.error().message.find("one switch"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(All, EachSample, testing::Values(Fidelity::nic, Fidelity::full));

}  // namespace
}  // namespace spinloom::goal
