// Critical paths: without gaps, and as the closed forms say.
#include "predict/goal/model/critical_path.hpp"

#include <gtest/gtest.h>

#include "predict/goal/patterns/patterns.hpp"
#include "predict/goal/testing/model.hpp"

namespace spinloom::goal {
namespace {

using namespace test;

// Steps without a gap from 0 to the end, of which a CPU does no two at once.
void check_path(const Schedule& schedule, const Model& model) {
  Record record;
  const auto outcome = run(schedule, model, &record);
  if (!outcome) return;
  const std::vector<Step> steps = critical_path(schedule, model, record);
  uint64_t now = 0;
  uint64_t latency = 0;
  for (const Step& step : steps) {
    EXPECT_EQ(step.begin_ps, now);
    EXPECT_GT(step.end_ps, step.begin_ps);
    now = step.end_ps;
    if (step.kind == StepKind::latency) latency += step.end_ps - step.begin_ps;
    const bool computes =
        schedule.shape(schedule.program(step.rank).operations[step.operation]).kind == schedule::Kind::compute;
    EXPECT_EQ(computes, step.kind == StepKind::compute);
  }
  EXPECT_EQ(now, outcome->makespan_ps);
  EXPECT_EQ(latency % std::max<uint64_t>(model.L_ps, 1), 0);
}

TEST(Model, CriticalPathsHaveNoGaps) {
  test::for_seeds(5000, [](Random& random) {
    const Schedule schedule =
        test::random_schedule(random, random.between(1, 30), test::Sizes::usual, test::Words::all);
    Model model = random_model(random);
    check_path(schedule, model);
    if (random.chance(1, 2)) return;
    model.network = random_network(random, schedule.ranks());
    model.network->packet_bytes = 4096;
    check_path(schedule, model);
  });
}

TEST(Model, TheCriticalPathOfADisseminationIsItsClosedForm) {
  const auto made = make_pattern("dissemination", 64, 100);
  Record record;
  ASSERT_TRUE(run(*made, {}, &record));
  std::map<StepKind, uint64_t> sums;
  for (const Step& step : critical_path(*made, {}, record)) sums[step.kind] += step.end_ps - step.begin_ps;
  EXPECT_EQ(sums, (std::map<StepKind, uint64_t>{{StepKind::send, 6 * o},
                                                {StepKind::receive, 6 * o},
                                                {StepKind::latency, 6 * L},
                                                {StepKind::bytes, 6 * 99 * G}}));
}

TEST(Model, TheCriticalPathOfARendezvousGoesThereAndBackAndThere) {
  const auto made = schedule::read_goal(
      "num_ranks 2\nrank 0 {\nsend 70000b to 1\n}\nrank 1 {\nc: calc 10\nr: recv 70000b from 0\nr requires c\n}\n");
  Record record;
  ASSERT_TRUE(run(*made, {}, &record));
  std::vector<std::pair<StepKind, uint64_t>> steps;
  for (const Step& step : critical_path(*made, {}, record)) steps.emplace_back(step.kind, step.end_ps - step.begin_ps);
  EXPECT_EQ(steps, (std::vector<std::pair<StepKind, uint64_t>>{{StepKind::send, o},
                                                               {StepKind::latency, L},
                                                               {StepKind::latency, L},
                                                               {StepKind::latency, L},
                                                               {StepKind::bytes, 69999 * G},
                                                               {StepKind::receive, o}}));
}

// The times of a CPU's work and of its waits, in order.
using Stretches = std::vector<std::pair<uint64_t, uint64_t>>;

std::map<std::pair<uint32_t, uint32_t>, Stretches> work_and_waits(const Schedule& schedule, const Record& record,
                                                                  const std::vector<Wait>& waited) {
  std::map<std::pair<uint32_t, uint32_t>, Stretches> found;
  const auto cpu_of = [&](uint32_t rank, uint32_t number) {
    return schedule.shape(schedule.program(rank).operation(number)).cpu;
  };
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    for (uint32_t number = 0; number < schedule.program(rank).size(); ++number) {
      const OperationTimes& times = record.of(rank, number);
      if (schedule.shape(schedule.program(rank).operation(number)).kind == schedule::Kind::arrived) continue;
      if (times.cpu_end_ps > times.begin_ps) {
        found[{rank, cpu_of(rank, number)}].emplace_back(times.begin_ps, times.cpu_end_ps);
      }
    }
  }
  for (const Wait& wait : waited) {
    EXPECT_LT(wait.begin_ps, wait.end_ps);
    EXPECT_LE(wait.cause_ps, wait.end_ps - wait.begin_ps);
    EXPECT_EQ(wait.end_ps, record.of(wait.rank, wait.operation).begin_ps);
    found[{wait.rank, cpu_of(wait.rank, wait.operation)}].emplace_back(wait.begin_ps, wait.end_ps);
  }
  for (auto& [cpu, times] : found) std::ranges::sort(times);
  return found;
}

TEST(Model, WorkAndWaitsOfACpuFollowEachOtherWithoutAGap) {
  test::for_seeds(3000, [](Random& random) {
    const Schedule schedule =
        test::random_schedule(random, random.between(1, 30), test::Sizes::usual, test::Words::all);
    const Model model = random_model(random);
    Record record;
    if (!run(schedule, model, &record)) return;
    for (const auto& [cpu, times] : work_and_waits(schedule, record, waits(schedule, model, record))) {
      uint64_t now = 0;
      for (const auto& [begin_ps, end_ps] : times) {
        EXPECT_EQ(begin_ps, now) << "rank " << cpu.first << " CPU " << cpu.second;
        now = end_ps;
      }
    }
  });
}

TEST(Model, AWaitNamesTheRankAndWhatItDidMeanwhile) {
  const auto made = schedule::read_goal(
      "num_ranks 3\nrank 0 {\nc: calc 100000\ns: send 1b to 1\ns requires c\n}\n"
      "rank 1 {\nr: recv 1b from 0\ns: send 1b to 2\ns requires r\n}\nrank 2 {\nrecv 1b from 1\n}\n");
  Record record;
  ASSERT_TRUE(run(*made, {}, &record));
  const std::vector<Wait> found = waits(*made, {}, record);
  ASSERT_EQ(found.size(), 2u);
  const uint64_t computed_ps = 100'000'000;
  EXPECT_EQ(found[0].rank, 1u);
  EXPECT_EQ(found[0].waited_for, 0u);
  EXPECT_EQ(found[0].end_ps, computed_ps + o + L);
  EXPECT_EQ(found[1].rank, 2u);
  EXPECT_EQ(found[1].waited_for, 1u);
  EXPECT_EQ(found[1].end_ps, computed_ps + 3 * o + 2 * L);
  for (const Wait& wait : found) {
    EXPECT_EQ(wait.begin_ps, 0u);
    EXPECT_EQ(wait.cause, StepKind::compute);
    EXPECT_EQ(wait.cause_rank, 0u);
    EXPECT_EQ(wait.cause_ps, computed_ps);
  }
}

}  // namespace
}  // namespace spinloom::goal
