// Skeletons of programs: the messages of halos and all-to-alls, and their computations.
#include "predict/program/skeleton.hpp"

#include "predict/goal/model/model.hpp"
#include "predict/program/testing/trace_recorder.hpp"

namespace spinloom::predict {
namespace {

using namespace test;
using Kind = SkeletonStep::Kind;

const SkeletonTypes columns{"vector(4, 1, 4, double)", "vector(4, 1, 8, double)"};  // 32 B

std::vector<trace::RankTrace> made(uint32_t ranks, const std::vector<SkeletonStep>& steps, uint32_t repeats = 1) {
  auto traces = make_skeleton(ranks, steps, repeats);
  EXPECT_TRUE(traces.ok()) << (traces.ok() ? "" : traces.error().message);
  return traces.ok() ? std::move(*traces) : std::vector<trace::RankTrace>();
}

std::string refused(uint32_t ranks, const std::vector<SkeletonStep>& steps, uint32_t repeats = 1) {
  const auto traces = make_skeleton(ranks, steps, repeats);
  return traces.ok() ? "" : traces.error().message;
}

uint64_t messages_of(const PricedSchedule& priced) {
  uint64_t sum = 0;
  for (const Bill& bill : priced.bills) sum += bill.sent_messages;
  return sum;
}

// 2 D P messages an exchange, but none in a dimension of one rank
TEST(Skeleton, AHaloHasTwoNeighboursInEachDimension) {
  for (const std::vector<uint32_t>& grid :
       std::vector<std::vector<uint32_t>>{{2}, {5}, {2, 3}, {3, 1, 4}, {2, 2, 2, 2}}) {
    uint32_t ranks = 1;
    uint64_t dimensions = 0;
    for (const uint32_t extent : grid) {
      ranks *= extent;
      if (extent > 1) ++dimensions;
    }
    const std::vector<SkeletonTypes> types(grid.size(), columns);
    const Script out = script(made(ranks, {{.kind = Kind::halo, .grid = grid, .types = types}}, 3));
    EXPECT_EQ(messages_of(priced(out)), 3 * 2 * dimensions * ranks);
    EXPECT_EQ(out.layouts.size(), 2U);
  }
}

TEST(Skeleton, NeighboursOfAGridAreThoseOfRowMajorOrder) {
  // 2 x 3: rank 4 is (1, 1); below and above are (0, 1) both times, left and right (1, 0) and (1, 2)
  const auto traces = made(6, {{.kind = Kind::halo, .grid = {2, 3}, .types = {columns, columns}}});
  std::vector<int32_t> to;
  std::vector<int32_t> from;
  for (const trace::Event& event : traces[4].events) {
    const Signature& one = traces[4].signatures[event.signature];
    if (one.call == Call::Send) to.push_back(one.peer);
    if (one.call == Call::Recv) from.push_back(one.peer);
  }
  EXPECT_EQ(to, (std::vector<int32_t>{1, 1, 3, 5}));
  EXPECT_EQ(from, (std::vector<int32_t>{1, 1, 5, 3}));  // data that goes down comes from above
}

TEST(Skeleton, AHaloWaitsForAllThatItHasBegun) {
  const auto traces = made(3, {{.kind = Kind::halo, .grid = {3}, .types = {columns}}});
  for (const trace::RankTrace& trace : traces) {
    std::vector<Call> calls;
    std::vector<uint32_t> begun;
    std::vector<uint32_t> awaited;
    for (const trace::Event& event : trace.events) {
      const Signature& one = trace.signatures[event.signature];
      calls.push_back(one.call);
      auto& requests = one.call == Call::Waitall ? awaited : begun;
      requests.insert(requests.end(), one.requests.begin(), one.requests.end());
    }
    EXPECT_EQ(calls, (std::vector<Call>{Call::Init, Call::Recv, Call::Recv, Call::Send, Call::Send, Call::Waitall,
                                        Call::Finalize}));
    EXPECT_EQ(begun, (std::vector<uint32_t>{0, 1, 2, 3}));
    EXPECT_EQ(awaited, begun);
  }
}

// Computation c beside the exchange, C before it, and messages that come before c ends. Each end of a message takes o:
//   T = C + 2 o + c + 2 o
TEST(Skeleton, AComputationBesideAHaloHidesIt) {
  const goal::Model model{.L_ps = 1000, .o_ps = 0, .g_ps = 0, .G = {1, 1}, .unit_ps = 1};
  const std::vector<SkeletonStep> steps{
      {.kind = Kind::compute, .compute_ns = 7},
      {.kind = Kind::halo, .compute_ns = 50, .grid = {4}, .types = {{"contig(32, byte)", "contig(32, byte)"}}}};
  Costs costs;
  costs.message_costs = {{0, 100, 100, 0}};
  const auto out = goal::run(priced(script(made(4, steps)), costs).schedule, model);
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->makespan_ps, 7'000U + 2 * 100 + 50'000 + 2 * 100);
}

TEST(Skeleton, CallsTakeNoTimeAndComputationsTheirs) {
  const auto traces = made(3, {{.kind = Kind::compute, .compute_ns = 40}, {.kind = Kind::allreduce, .bytes = 8}}, 5);
  const Script out = script(traces);
  for (const RankScript& rank : out.ranks) {
    EXPECT_EQ(rank.recorded.compute_ns, 200U);
    EXPECT_EQ(rank.recorded.communication_ns, 0U);
  }
}

TEST(Skeleton, AnAllToAllSendsEachPeerItsBlock) {
  const PricedSchedule out = priced(script(made(7, {{.kind = Kind::alltoall, .types = {columns}}})));
  EXPECT_EQ(messages_of(out), 7U * 6);
  for (const Bill& bill : out.bills) EXPECT_EQ(bill.received_bytes, 6U * 32);
}

TEST(Skeleton, WhatCannotBeIsRefused) {
  const SkeletonStep halo{.kind = Kind::halo, .grid = {2, 3}, .types = {columns, columns}};
  EXPECT_EQ(refused(7, {halo}), "step 0: the grid has 6 places for 7 ranks");
  EXPECT_EQ(refused(6, {{.kind = Kind::halo, .grid = {6}, .types = {}}}),
            "step 0: 0 types for 1 dimensions; each has its own");
  EXPECT_EQ(refused(2, {{.kind = Kind::alltoall, .types = {{"contig(4, byte)", "contig(5, byte)"}}}}),
            "step 0: 4 B are sent and 5 B received");
  EXPECT_EQ(refused(0, {}), "a skeleton of 0 ranks: give 1 to 8192");
  EXPECT_NE(refused(8192, {halo, {.kind = Kind::allreduce}}, UINT32_MAX), "");
  EXPECT_NE(refused(2, {{.kind = Kind::alltoall, .types = {{"vectr(1)", "byte"}}}}), "");
}

}  // namespace
}  // namespace spinloom::predict
