// Ranks that share processors, found by the processors that each may use.
#include "live/process/crowding.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <bit>

namespace spinloom::process {
namespace {

TEST(Crowding, ThereAreMoreRanksThanProcessors) {
  const Processors two{0b11};
  EXPECT_FALSE(are_crowded({two}, 0));
  EXPECT_FALSE(are_crowded({two, two}, 1));
  EXPECT_TRUE(are_crowded({two, two, two}, 0));
}

TEST(Crowding, AProcessorForEachRankIsEnough) {
  std::vector<Processors> ranks;
  for (int rank = 0; rank < 100; ++rank) {
    ranks.push_back(Processors(2));
    ranks.back()[rank / 64] = uint64_t{1} << (rank % 64);
  }
  for (size_t own = 0; own < ranks.size(); ++own) EXPECT_FALSE(are_crowded(ranks, own));
  ranks.push_back({1});
  EXPECT_TRUE(are_crowded(ranks, 0)) << "rank 100 is where rank 0 is";
}

TEST(Crowding, RanksThatAreConfinedTogetherShareThoughOthersHaveRoom) {
  const Processors one{1}, all{0xffff};
  const std::vector<Processors> ranks{one, one, all};
  EXPECT_TRUE(are_crowded(ranks, 0));
  EXPECT_FALSE(are_crowded(ranks, 2));
}

TEST(Crowding, RanksOfWhichNothingIsKnownAreHere) {
  EXPECT_FALSE(are_crowded({{0b11}, {}}, 0));
  EXPECT_TRUE(are_crowded({{0b11}, {}, {}}, 0));
  EXPECT_TRUE(are_crowded({{}, {0b11}}, 0)) << "of itself";
}

TEST(Crowding, TheSystemSaysWhereAProcessRuns) {
  const Processors here = processors_of(getpid());
  size_t count = 0;
  for (const uint64_t word : here) count += static_cast<size_t>(std::popcount(word));
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_EQ(count, static_cast<size_t>(CPU_COUNT(&set)));
  EXPECT_TRUE(processors_of(-1).empty());
}

}  // namespace
}  // namespace spinloom::process
