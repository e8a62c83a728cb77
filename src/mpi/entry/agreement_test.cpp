// Ranks that make the same calls see the same ones go the new way, and wait for nobody.
#include "mpi/entry/agreement.hpp"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

namespace spinloom::mpi {
namespace {

// Ranks are threads that make the same calls, each at its own pace; some propose. Which calls go the new way?
TEST(Agreement, AllRanksSeeTheSameCallsGoTheNewWay) {
  if (!heed_barriers()) GTEST_SKIP() << "this kernel has no barrier for other processes";
  constexpr uint32_t ranks = 3;
  constexpr int calls = 3'000;
  for (int round = 0; round < 40; ++round) {
    Ballot ballot{};
    std::vector<std::atomic<uint64_t>> counts(ranks);
    std::vector<std::atomic<uint64_t>*> all;
    for (auto& count : counts) all.push_back(&count);
    std::vector<std::vector<bool>> went(ranks);
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        Voter voter;
        voter.join(&ballot, &counts[rank]);
        for (int call = 0; call < calls; ++call) {
          const uint32_t kind = static_cast<uint32_t>(call) % 2;
          went[rank].push_back(voter.begin_call(kind, all));
          if (voter.is_open(kind) && call == 10 * round + static_cast<int>(100 * rank)) voter.propose(kind, all);
          if (call % (7 + round) == 0) std::this_thread::yield();
        }
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_TRUE(went[0].back() || went[0][calls - 2]);
    EXPECT_FALSE(went[0].front());
    for (uint32_t rank = 1; rank < ranks; ++rank) EXPECT_EQ(went[rank], went[0]);
  }
}

struct TwoRanks {
  TwoRanks() {
    first.join(&ballot, &counts[0]);
    second.join(&ballot, &counts[1]);
  }
  Ballot ballot{};
  std::atomic<uint64_t> counts[2] = {};
  std::array<std::atomic<uint64_t>*, 2> all{&counts[0], &counts[1]};
  Voter first, second;
};

// The second call of one rank is the second of the other, though the other has found the ballot only after it.
TEST(Agreement, CallsAreCountedBeforeTheBallotIsFound) {
  if (!heed_barriers()) GTEST_SKIP() << "this kernel has no barrier for other processes";
  Ballot ballot{};
  std::atomic<uint64_t> counts[2] = {};
  const std::array<std::atomic<uint64_t>*, 2> all{&counts[0], &counts[1]};
  Voter first;
  Voter second;
  first.join(&ballot, &counts[0]);
  for (int call = 0; call < 3; ++call) EXPECT_FALSE(second.begin_call(0, all));
  counts[1] = second.calls();
  second.join(&ballot, &counts[1]);
  EXPECT_FALSE(first.begin_call(0, all));
  first.propose(0, all);  // the proposal holds from the fourth call on
  for (int call = 1; call < 3; ++call) EXPECT_FALSE(first.begin_call(0, all));
  EXPECT_TRUE(first.begin_call(0, all));
  EXPECT_TRUE(second.begin_call(0, all));
}

// A rank that proposes may lose its core, or be killed, before the number stands.
TEST(Agreement, NobodyWaitsForTheOneWhoProposes) {
  if (!heed_barriers()) GTEST_SKIP() << "this kernel has no barrier for other processes";
  TwoRanks ranks;
  EXPECT_FALSE(ranks.first.begin_call(0, ranks.all));
  ranks.ballot.first_call[0] = Ballot::undecided;
  for (int call = 0; call < 3; ++call) EXPECT_FALSE(ranks.second.begin_call(1, ranks.all));
  EXPECT_FALSE(ranks.second.begin_call(0, ranks.all));  // the fourth
  EXPECT_TRUE(ranks.second.begin_call(0, ranks.all));
  for (int call = 0; call < 3; ++call) EXPECT_FALSE(ranks.first.begin_call(0, ranks.all));
  EXPECT_TRUE(ranks.first.begin_call(0, ranks.all));
}

}  // namespace
}  // namespace spinloom::mpi
