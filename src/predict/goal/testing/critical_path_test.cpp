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

}  // namespace
}  // namespace spinloom::goal
