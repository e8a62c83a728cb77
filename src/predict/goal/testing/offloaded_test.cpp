// Graphs of collective operations as triggered operations: their algebra at message level, where o is 0 and m, too.
#include "predict/goal/patterns/offloaded.hpp"

#include <gtest/gtest.h>

#include "portals/collective/choice.hpp"
#include "predict/goal/model/model.hpp"
#include "predict/schedule/check.hpp"

namespace spinloom::goal {
namespace {

using collective::Operation;

Result<schedule::Schedule> made(Operation operation, std::string_view algorithm, uint32_t ranks, uint64_t bytes) {
  SPL_ASSIGN(const auto* const found, collective::find(operation, algorithm));
  SPL_ASSIGN(const auto graphs, collective::graphs_of(*found, {.ranks = ranks, .bytes = bytes}, 0));
  return offloaded(graphs);
}

// n = s - 1 bytes cost G.
TEST(Offloaded, AChainIsSoManyHops) {
  const auto schedule = made(Operation::bcast, "chain", 5, 101);
  ASSERT_TRUE(schedule.ok());
  ASSERT_TRUE(schedule::check(*schedule).ok());
  const Model model{.L_ps = 1000, .o_ps = 0, .g_ps = 10, .G = {3, 1}};
  const auto outcome = run(*schedule, model);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->makespan_ps, 4 * (1000 + 100 * 3));  // T = (P - 1)(L + n G)
}

// A combination is a message to the rank itself.
TEST(Offloaded, AReductionOfTwoCombinesBehindItsMessage) {
  const auto schedule = made(Operation::reduce, "linear", 2, 101);
  ASSERT_TRUE(schedule.ok());
  ASSERT_TRUE(schedule::check(*schedule).ok());
  const Model model{.L_ps = 1000, .o_ps = 0, .g_ps = 10, .G = {3, 1}};
  const auto outcome = run(*schedule, model);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->makespan_ps, 2 * (1000 + 100 * 3));
}

TEST(Offloaded, EveryMessageNeedsAReceive) {
  collective::Graph lonely;
  lonely.operations.push_back({.kind = collective::VertexKind::send, .peer = 1});
  const std::vector<collective::Graph> ranks{lonely, collective::Graph{}};
  const auto schedule = offloaded(ranks);
  ASSERT_FALSE(schedule.ok());
  EXPECT_EQ(schedule.error().message, "rank 1 receives no message 0 of rank 0");
}

}  // namespace
}  // namespace spinloom::goal
