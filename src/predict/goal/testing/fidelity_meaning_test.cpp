// One meaning: who gets what, in which order, on random schedules and patterns.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "predict/goal/model/record.hpp"
#include "predict/goal/nics/fidelity.hpp"
#include "predict/goal/patterns/patterns.hpp"
#include "predict/goal/testing/random_schedules.hpp"
#include "simulated/node/testing/profile.hpp"

namespace spinloom::goal {
namespace {

using namespace test;
using schedule::Schedule;

std::string matches_of(const Schedule& schedule, const Record& record) {
  std::string found;
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    for (uint32_t number = 0; number < schedule.program(rank).size(); ++number) {
      const OperationTimes& trace = record.of(rank, number);
      if (schedule.shape(schedule.program(rank).operations[number]).kind > schedule::Kind::compute) continue;
      if (trace.partner != none) {
        found += text(rank, ".", number, "-", trace.partner_rank, ".", trace.partner, " ");
      }
    }
  }
  return found;
}

// Each operation was free when all that it waits for had come, and one of those of its any-of edges.
void expect_order(const Schedule& schedule, const Record& record) {
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    const schedule::Program& program = schedule.program(rank);
    std::map<uint32_t, uint64_t> first;
    for (uint32_t before = 0; before < program.size(); ++before) {
      for (const schedule::Edge& edge : program.edges_of(before)) {
        const OperationTimes& trace = record.of(rank, before);
        const bool is_receive = schedule.shape(program.operations[before]).kind == schedule::Kind::receive;
        const uint64_t begin = is_receive ? trace.posted_ps : trace.begin_ps;
        const uint64_t came = edge.awaits() == schedule::Awaits::end ? trace.end_ps : begin;
        if (edge.join() == schedule::Join::all) {
          EXPECT_LE(came, record.of(rank, edge.to()).ready_ps) << rank << ": " << edge.to() << " behind " << before;
        } else {
          const auto [known, _] = first.emplace(edge.to(), came);
          known->second = std::min(known->second, came);
        }
      }
    }
    for (const auto& [number, came] : first)
      EXPECT_LE(came, record.of(rank, number).ready_ps) << rank << ": " << number;
  }
}

TEST(Fidelity, RandomSchedulesMeanTheSame) {
  const simulated::Profile profile = simulated::test_profile();
  uint64_t determined = 0;
  uint64_t stalled = 0;
  uint64_t refused = 0;
  uint64_t one_sided = 0;
  uint64_t firsts = 0;
  for_seeds(600, [&](Random& random) {
    const uint64_t sizes[] = {0, 1, 4, 10, 65535, UINT64_MAX};
    const Model model{.o_ps = random.below(3) * 700'000,
                      .O = {static_cast<int64_t>(random.below(2)) * 9, 2},
                      .S_bytes = sizes[random.below(6)],
                      .unit_ps = random.chance(1, 2) ? 1000u : 1'000'000u};
    const Schedule schedule =
        test::random_schedule(random, random.between(1, 10), test::Sizes::usual, test::Words::all);
    Record expected;
    const auto message = run(schedule, model, &expected);
    for (const Fidelity fidelity : {Fidelity::nic, Fidelity::full}) {
      Record record;
      const auto outcome = run_on(fidelity, profile, schedule, model, &record);
      if (!outcome && outcome.error().code == Code::unsupported) {
        ++refused;
        continue;
      }
      ASSERT_TRUE(outcome || outcome.error().code == Code::stalled) << outcome.error().message;
      if (outcome) expect_order(schedule, record);
      if (!test::is_determined(schedule)) continue;
      for (const schedule::Program& program : schedule.programs()) {
        for (const schedule::Operation& operation : program.operations) {
          one_sided += schedule::is_one_sided(schedule.shape(operation).kind) && outcome.ok() ? 1 : 0;
        }
        firsts += !program.have_any_edges().empty() && outcome.ok() ? 1 : 0;
      }
      ++determined;
      ASSERT_EQ(outcome.ok(), message.ok()) << (outcome ? message.error().message : outcome.error().message);
      if (outcome) {
        EXPECT_EQ(matches_of(schedule, record), matches_of(schedule, expected));
        EXPECT_EQ(outcome->compute_ps, message->compute_ps);
      } else {
        ++stalled;
        const auto sum = [](const std::string& said) { return said.substr(said.rfind("; in all") + 1); };
        EXPECT_EQ(sum(outcome.error().message), sum(message.error().message));
      }
    }
  });
  if (std::getenv("SPINLOOM_TEST_SEED") != nullptr) return;
  EXPECT_GT(determined, 80) << "schedules must be compared";
  EXPECT_GT(stalled, 0);
  EXPECT_GT(one_sided, 100);
  EXPECT_GT(firsts, 20);
  EXPECT_LT(refused, 900);
}

TEST(Fidelity, PatternsMatchTheSamePairs) {
  const simulated::Profile profile = simulated::test_profile();
  for (const char* const name : {"dissemination", "binomial_broadcast", "linear_gather", "pairwise_exchange"}) {
    for (const uint64_t bytes : {uint64_t{8}, uint64_t{100'000}}) {
      const auto schedule = make_pattern(name, 12, bytes);
      ASSERT_TRUE(schedule) << name;
      Record message;
      ASSERT_TRUE(run(*schedule, {}, &message));
      for (const Fidelity fidelity : {Fidelity::nic, Fidelity::full}) {
        Record record;
        const auto outcome = run_on(fidelity, profile, *schedule, {}, &record);
        ASSERT_TRUE(outcome) << name << ": " << outcome.error().message;
        EXPECT_EQ(matches_of(*schedule, record), matches_of(*schedule, message)) << name;
      }
    }
  }
}

}  // namespace
}  // namespace spinloom::goal
