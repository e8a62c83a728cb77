// Programs on more ranks than they were recorded on: what was recorded on the larger number must come out.
#include "predict/program/grow.hpp"

#include <gtest/gtest.h>

#include "predict/program/grid.hpp"
#include "predict/program/testing/trace_recorder.hpp"

namespace spinloom::predict {
namespace {

using namespace test;

// A halo exchange on a grid, with faces of `faces` bytes along each dimension, then an allreduce of 8 B. Without
// `periodic`, ranks at an edge send to MPI_PROC_NULL, or skip the calls.
std::vector<trace::RankTrace> halo(const Grid& grid, bool periodic, bool skips = false,
                                   const std::vector<int64_t>& faces = {1000, 2000, 3000}, uint64_t compute_ns = 1000) {
  std::vector<trace::RankTrace> traces;
  for (uint32_t rank = 0; rank < grid.ranks(); ++rank) {
    Recorder one(rank, grid.ranks());
    for (int turn = 0; turn < 2; ++turn) {
      std::vector<uint32_t> requests;
      for (size_t i = 0; i < grid.dims.size(); ++i) {
        for (const int8_t direction : {int8_t{-1}, int8_t{1}}) {
          Grid::Steps steps{};
          steps[i] = direction;
          const Grid::Shifted to = grid.shifted(rank, steps);
          const bool ends = to.crossed_edges != 0 && !periodic;
          if (ends && skips) continue;
          const int32_t peer = ends ? trace::nobody : static_cast<int32_t>(to.rank);
          const int64_t bytes = faces[i];
          const int32_t tag = direction < 0 ? 1 : 2;
          const auto request = static_cast<uint32_t>(requests.size());
          one.ireceive(10, peer, bytes, request, 3 - tag).isend(10, peer, bytes, request + 1, tag);
          requests.push_back(request);
          requests.push_back(request + 1);
        }
      }
      one.wait(compute_ns, requests).call(0, {.call = Call::Allreduce, .sends = {{0, 8, type_byte}}});
    }
    traces.push_back(one.end());
  }
  return traces;
}

std::vector<std::vector<Leg>> legs_of(const std::vector<trace::RankTrace>& traces) {
  std::vector<std::vector<Leg>> found;
  for (const RankScript& one : script(traces).ranks) found.push_back(one.legs);
  return found;
}

void expect_same(const std::vector<trace::RankTrace>& recorded, const std::vector<trace::RankTrace>& expected) {
  const auto made = grow(recorded, static_cast<uint32_t>(expected.size()));
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(legs_of(made->traces), legs_of(expected));
}

std::string refusal(const std::vector<trace::RankTrace>& traces, uint32_t ranks) {
  const auto made = grow(traces, ranks);
  return made.ok() ? "" : made.error().message;
}

TEST(Grow, HalosOnPeriodicGrids) {
  expect_same(halo({{3}}, true), halo({{12}}, true));
  expect_same(halo({{3, 3}}, true), halo({{6, 6}}, true));
  expect_same(halo({{3, 4}}, true), halo({{6, 8}}, true));
  expect_same(halo({{3, 3, 3}}, true), halo({{6, 6, 6}}, true));
}

TEST(Grow, HalosWithEnds) {
  expect_same(halo({{2, 2}}, false), halo({{4, 4}}, false));
  expect_same(halo({{2, 3}}, false), halo({{4, 6}}, false));
}

TEST(Grow, HalosWhoseEdgesSkipCalls) {
  expect_same(halo({{3, 3}}, false, true), halo({{6, 6}}, false, true));
  EXPECT_TRUE(refusal(halo({{2, 2}}, false, true), 16).ends_with("record three or more along each dimension"));
}

TEST(Grow, BothNeighboursAreOne) {
  EXPECT_EQ(refusal(halo({{2}}, true), 8),
            "no grid explains what the ranks do: on 2: Recv, call 1: with two ranks along a dimension both neighbours "
            "are one: record three or more; where ranks at edges do other calls, record three or more along each "
            "dimension");
}

// A transposition of pencils: all-to-all along rows of the grid, `elements` elements for a whole row, then along
// columns.
std::vector<trace::RankTrace> pencils(const Grid& grid, uint64_t elements = 24) {
  std::vector<trace::RankTrace> traces;
  for (uint32_t rank = 0; rank < grid.ranks(); ++rank) {
    Recorder one(rank, grid.ranks());
    for (const uint32_t mask : {2U, 1U}) {
      const std::vector<uint32_t> members = grid.slice(rank, mask);
      const uint32_t comm = one.communicator(members);
      const auto count = static_cast<int64_t>(elements / members.size());
      one.call(50, {.call = Call::Alltoall,
                    .comm = comm,
                    .sends = {{0, count, type_byte}},
                    .receives = {{0, count, type_byte}}});
    }
    traces.push_back(one.end());
  }
  return traces;
}

TEST(Grow, PencilsOfATransform) {
  expect_same(pencils({{2, 2}}), pencils({{4, 4}}));
  expect_same(pencils({{2, 3}}), pencils({{4, 6}}));
  EXPECT_EQ(refusal(pencils({{2, 2}}), 100),
            "Alltoall of 12 elements for each of 2 ranks has 24 for all: they are not to be dealt to 10");
}

void expect_same_problem(const std::vector<trace::RankTrace>& recorded, const std::vector<trace::RankTrace>& expected) {
  const auto made = grow(recorded, static_cast<uint32_t>(expected.size()), Scaling::strong);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(legs_of(made->traces), legs_of(expected));
}

std::string strong_refusal(const std::vector<trace::RankTrace>& traces, uint32_t ranks) {
  const auto made = grow(traces, ranks, Scaling::strong);
  return made.ok() ? "" : made.error().message;
}

// A face along dimension i shrinks by as much as the grid grows along the others: face_i / product of f_j, j != i.
TEST(Grow, ARankWithoutCommunicatorsIsRefused) {
  auto recorded = halo({{2, 2}}, true);
  recorded[3].comms.clear();
  EXPECT_EQ(refusal(recorded, 16), "the trace of rank 3 has no communicator");
}

TEST(GrowStrong, FacesShrinkByTheOtherDimensions) {
  expect_same_problem(halo({{3}}, true), halo({{12}}, true));
  expect_same_problem(halo({{3, 3}}, true), halo({{6, 6}}, true, false, {500, 1000}));
  expect_same_problem(halo({{3, 4}}, true), halo({{6, 8}}, true, false, {500, 1000}));
  expect_same_problem(halo({{3, 3, 3}}, true), halo({{6, 6, 6}}, true, false, {250, 500, 750}));
  expect_same_problem(halo({{2, 3}}, false), halo({{4, 6}}, false, false, {500, 1000}));
}

// An all-to-all's block is the rank's data by the ranks of its row: both shrink.
TEST(GrowStrong, PencilsShrinkTwice) { expect_same_problem(pencils({{2, 2}}, 96), pencils({{4, 4}}, 24)); }

// T(rank) = recorded computation * recorded ranks / ranks
TEST(GrowStrong, RanksShareTheComputation) {
  const auto made = grow(halo({{3, 3}}, true), 36, Scaling::strong);
  ASSERT_TRUE(made.ok());
  const Script grown = script(made->traces);
  const Script recorded = script(halo({{3, 3}}, true));
  // Each gap is rounded up: 2 turns of 8 calls that wait for 10 ns, and of 1000 ns
  EXPECT_EQ(recorded.ranks[0].recorded.compute_ns, 2U * (8 * 10 + 1000));
  EXPECT_EQ(grown.ranks[0].recorded.compute_ns, 2U * (8 * 3 + 250));
}

TEST(GrowStrong, ALayoutKeepsTheFirstOfItsBlocks) {
  const auto columns = [](const Grid& grid, uint32_t type) {
    std::vector<trace::RankTrace> traces;
    for (uint32_t rank = 0; rank < grid.ranks(); ++rank) {
      Recorder one(rank, grid.ranks());
      const auto to = static_cast<int32_t>(grid.shifted(rank, {1, 0}).rank);
      const auto from = static_cast<int32_t>(grid.shifted(rank, {-1, 0}).rank);
      one.call(0, {.call = Call::Sendrecv,
                   .peer = to,
                   .receive_peer = from,
                   .sends = {{0, 1, type}},
                   .receives = {{0, 1, type}}});
      one.call(0, {.call = Call::Sendrecv,
                   .peer = static_cast<int32_t>(grid.shifted(rank, {0, 1}).rank),
                   .receive_peer = static_cast<int32_t>(grid.shifted(rank, {0, -1}).rank)});
      traces.push_back(one.end());
    }
    return traces;
  };
  const auto made = grow(columns({{3, 3}}, type_columns), 36, Scaling::strong);
  ASSERT_TRUE(made.ok()) << made.error().message;
  const Script grown = script(made->traces);
  ASSERT_FALSE(grown.layouts.empty());
  EXPECT_EQ(grown.ranks[0].legs[0].part.bytes, 16U);  // 2 of 4 blocks of 8 B
  EXPECT_EQ(strong_refusal(columns({{3, 3}}, type_columns), 225),
            "Sendrecv: a type of 4 blocks is not to be divided by 5");
}

TEST(GrowStrong, WhatIsNotToBeDividedIsRefused) {
  EXPECT_EQ(strong_refusal(halo({{3, 3}}, true, false, {999, 2000}), 36),
            "Recv: 999 elements are not to be divided by 2");
  EXPECT_EQ(strong_refusal(halo({{3, 4}}, true), 20),
            "a grid of 3 x 4 ranks became 4 x 5: where the problem stays as it is, each dimension grows by a whole "
            "number of times");
}

TEST(Grow, ARankThatAllSendToIsRefused) {
  std::vector<trace::RankTrace> traces;
  for (uint32_t rank = 0; rank < 5; ++rank) {
    Recorder one(rank, 5);
    if (rank == 0) {
      for (int32_t peer = 1; peer < 5; ++peer) one.receive(0, peer, 8);
    } else {
      for (int turn = 0; turn < 4; ++turn) one.send(0, 0, 8);
    }
    traces.push_back(one.end());
  }
  EXPECT_TRUE(refusal(traces, 10).starts_with("no grid explains what the ranks do: on 5: call 1 of rank 1 (Send)"));
}

TEST(Grow, OnlyMoreRanksAndOnlyGrids) {
  EXPECT_EQ(refusal(halo({{3, 3}}, true), 8), "the program was recorded on 9 ranks; it grows to more, not to 8");
  EXPECT_EQ(refusal(halo({{3, 3}}, true), 10), "10 ranks make no grid of 2 dimensions that is at least 3 x 3");
}

TEST(Grow, TheSameNumberOfRanksIsTheProgramItself) { expect_same(halo({{3, 4}}, true), halo({{3, 4}}, true)); }

}  // namespace
}  // namespace spinloom::predict
