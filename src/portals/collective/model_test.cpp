// The model's algebra, and each form against the play of its algorithm's Graphs.
#include "portals/collective/model.hpp"

#include <gtest/gtest.h>

#include <bit>

#include "base/testing/seeds.hpp"
#include "portals/collective/choice.hpp"
#include "portals/collective/play.hpp"

namespace spinloom::collective {
namespace {

const Model usual{.o_ps = 300'000,
                  .L_ps = 700'000,
                  .g_ps = 7'000,
                  .h_ps = 7'000,
                  .m_ps = 60'000,
                  .z_ps = 60'000,
                  .a_ps = 90'000,
                  .G = {75, 2},
                  .A = {50, 1}};

uint64_t played(const Algorithm& algorithm, const CallShape& shape, const Model& by, uint32_t root = 0) {
  const auto graphs = graphs_of(algorithm, shape, root);
  EXPECT_TRUE(graphs.ok()) << (graphs.ok() ? "" : graphs.error().message);
  const auto time = play(*graphs, by);
  EXPECT_TRUE(time.ok()) << (time.ok() ? "" : time.error().message);
  return *time;
}

// Costs of one message of 8 B: hop = L + 8 G + m, gap = g + 8 G.
TEST(Model, PingPong) {
  // T = 2 (o + L + s G + m).
  const Picoseconds half = usual.o_ps + usual.hop(8);
  EXPECT_EQ(static_cast<uint64_t>(2 * half), 2 * (300'000 + 700'000 + 300 + 60'000));
}

TEST(Play, BroadcastOfThreeRanks) {
  // Down a binomial tree rank 0 sends to 2 and then to 1: T = 2 o + gap + hop.
  const CallShape shape{.ranks = 3, .bytes = 8};
  EXPECT_EQ(played(**find(Operation::bcast, "binomial"), shape, usual), 2 * 300'000 + 7'300 + 760'300);
  // Along a chain: T = 2 o + 2 hop.
  EXPECT_EQ(played(**find(Operation::bcast, "chain"), shape, usual), 2 * 300'000 + 2 * 760'300);
}

TEST(Play, ReductionOfTwoRanks) {
  // T = 2 o + hop + s A + a
  const CallShape shape{.ranks = 2, .bytes = 8};
  EXPECT_EQ(played(**find(Operation::reduce, "linear"), shape, usual), 2 * 300'000 + 760'300 + 400 + 90'000);
}

TEST(Play, NamesWhatNeverBegins) {
  Graph lonely;
  lonely.operations.push_back({.kind = VertexKind::receive, .peer = 1});
  const std::vector<Graph> ranks{lonely, Graph{}};
  const auto time = play(ranks, usual);
  ASSERT_FALSE(time.ok());
  EXPECT_EQ(time.error().message, "operation 0 of rank 0 never begins");
}

// Whatever the parameters with g and h <= L + m are: equal, and where messages meet in NICs near.
TEST(Forms, AreWhatPlaysTake) {
  for_seeds(40, [](Random& random) {
    const auto upto = [&](uint64_t most) { return random.below(most + 1); };
    const auto rate = [&] { return Rate(static_cast<int64_t>(1 + upto(80)), static_cast<int64_t>(1 + upto(3))); };
    Model by{.o_ps = upto(500'000),
             .L_ps = 50'000 + upto(1'000'000),
             .m_ps = upto(800'000),
             .z_ps = upto(800'000),
             .a_ps = upto(800'000),
             .G = rate(),
             .A = rate()};
    by.g_ps = upto(50'000);
    by.h_ps = upto(50'000);
    const auto ranks = static_cast<uint32_t>(2 + upto(68));
    for (uint32_t number = 0; number < operation_count; ++number) {
      const auto operation = static_cast<Operation>(number);
      const bool has_shares = operation == Operation::allreduce || operation == Operation::bcast;
      const uint64_t bytes = 8 * (has_shares ? ranks : 1) * (uint64_t{1} << upto(10));
      CallShape shape{.ranks = ranks, .bytes = bytes, .element_bytes = 8};
      for (const Candidate& one : candidates(operation, shape, by)) {
        SCOPED_TRACE(text(name_of(operation), " by ", one.algorithm->name, ", P = ", ranks, ", S = ", bytes,
                          ", segments of ", one.segment_bytes));
        shape.segment_bytes = one.segment_bytes == 0 ? UINT64_MAX : one.segment_bytes;
        const uint64_t time = played(*one.algorithm, shape, by);
        const bool is_near = one.is_near || (one.segment_bytes != 0 && bytes % one.segment_bytes != 0);
        if (!is_near) {
          EXPECT_EQ(one.time_ps, time);
        } else {
          EXPECT_LE(one.time_ps, time + time / 3);
          EXPECT_GE(one.time_ps, time - time / 3);
        }
      }
    }
  });
}

}  // namespace
}  // namespace spinloom::collective
