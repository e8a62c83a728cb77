// Ranks are processes that share the table, or one process that plays several.
#include "mpi/meeting/polls.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "base/testing/seeds.hpp"

namespace spinloom::mpi {
namespace {

constexpr uint32_t ranks = 3;

struct Shared {
  Polls::Table table;
  Polls::Counts counts[ranks];
  std::atomic<uint32_t> met, wrong;
};

class PollsTest : public testing::Test {
 protected:
  void SetUp() override {
    void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    shared_ = static_cast<Shared*>(memory);
  }
  void TearDown() override { munmap(shared_, sizeof(Shared)); }
  [[nodiscard]] Polls of(uint32_t rank) const { return {shared_->table, shared_->counts[rank]}; }
  [[nodiscard]] bool is_empty() const {
    for (uint32_t i = 0; i < Polls::most; ++i) {
      if (of(0).turnout(i).ranks != 0) return false;
    }
    return true;
  }
  void play(uint32_t rank, uint64_t round, uint64_t comms, Random& random);

  Shared* shared_ = nullptr;
};

// One look of a rank that looks again and again.
std::optional<uint32_t> come(const Polls& polls, Key key, uint64_t calls = 1) {
  uint64_t seen = 0;
  return polls.join(key, false, calls, seen);
}

TEST_F(PollsTest, WhoComesBeforeTheFirstLooksAgain) {
  const Key key{17, 4};
  uint64_t seen = 0;
  EXPECT_FALSE(of(1).join(key, false, 5, seen));
  const auto opened = of(0).open(key, false, 2);
  ASSERT_TRUE(opened);
  EXPECT_EQ(of(1).turnout(*opened).ranks, 1U);
  const auto joined = of(1).join(key, true, 6, seen);
  ASSERT_EQ(joined, opened);
  EXPECT_EQ(of(0).turnout(*opened).ranks, 2U);
  EXPECT_TRUE(of(0).turnout(*opened).is_marked);
  EXPECT_EQ(of(0).count(*opened), 2U);
  EXPECT_EQ(of(1).count(*opened), 6U);
}

TEST_F(PollsTest, ALookAtAnUnchangedTableIsOneLoad) {
  const Key key{17, 4};
  uint64_t seen = 0;
  EXPECT_FALSE(of(1).join({18, 4}, false, 5, seen));
  ASSERT_TRUE(of(0).open(key, false, 1));
  EXPECT_FALSE(of(1).join({18, 4}, false, 5, seen));
  EXPECT_EQ(seen, 1U);
  EXPECT_FALSE(of(1).join(key, false, 5, seen));  // `seen` is as if it had looked for this one
}

TEST_F(PollsTest, KeysThatAreAlikeInOneHalfAreTwo) {
  const Key one{17, 4};
  const Key other{17, 5};
  const Key third{17 + Polls::most, 4};  // the same first place in the table
  const auto first = of(0).open(one, false, 1);
  const auto second = of(0).open(other, false, 1);
  EXPECT_NE(first, second);
  EXPECT_EQ(come(of(1), other), second);
  EXPECT_EQ(come(of(1), one), first);
  EXPECT_FALSE(come(of(1), third));
}

TEST_F(PollsTest, ABallotThatAllHaveLeftIsFreeAgainAndNew) {
  const Key key{3, 3};
  const auto number = of(0).open(key, true, 9);
  ASSERT_TRUE(number);
  ASSERT_EQ(come(of(1), key), number);
  of(0).ballot(*number).first_call[3] = 17;
  of(0).leave(*number);
  EXPECT_EQ(of(1).turnout(*number).ranks, 2U);
  of(1).leave(*number);
  EXPECT_EQ(of(1).turnout(*number).ranks, 0U);
  ASSERT_EQ(of(2).open({3, 4}, false, 1), number);
  EXPECT_EQ(of(2).ballot(*number).first_call[3], 0U);
  EXPECT_FALSE(of(2).turnout(*number).is_marked);
  EXPECT_FALSE(come(of(1), key));
}

// The generation of a ballot tells its memory from what an earlier communicator has left there.
TEST_F(PollsTest, NoTwoCommunicatorsOfABallotHaveOneGeneration) {
  std::vector<uint32_t> generations;
  for (uint64_t i = 0; i < 5; ++i) {
    const auto number = of(0).open({3, i}, false, 1);
    ASSERT_EQ(number, 3U);
    ASSERT_EQ(come(of(1), {3, i}), number);
    EXPECT_EQ(of(0).turnout(*number).generation, of(1).turnout(*number).generation);
    const uint32_t made = of(0).turnout(*number).generation;
    EXPECT_EQ(std::ranges::find(generations, made), generations.end()) << made;
    generations.push_back(made);
    of(1).leave(*number);
    of(0).leave(*number);
  }
}

// Two of three ranks free a communicator before the third has looked for its ballot.
TEST_F(PollsTest, WhoComesAfterAllOthersHaveLeftNeverHasAll) {
  const Key key{3, 3};
  const auto number = of(0).open(key, false, 1);
  ASSERT_TRUE(number);
  ASSERT_EQ(come(of(1), key), number);
  of(1).leave(*number);
  of(0).leave(*number);
  EXPECT_FALSE(come(of(2), key));
  EXPECT_TRUE(is_empty());
}

TEST_F(PollsTest, AFullTableTakesNobodyAndWhatIsThereIsFound) {
  for (uint64_t i = 0; i < Polls::most; ++i) ASSERT_TRUE(of(0).open({5 + i * i, i + 1}, false, 1)) << i;
  EXPECT_FALSE(of(0).open({1, 1}, false, 1));
  for (uint64_t i = 0; i < Polls::most; ++i) EXPECT_TRUE(come(of(1), {5 + i * i, i + 1})) << i;
  for (uint32_t i = 0; i < Polls::most; ++i) {
    EXPECT_EQ(of(0).turnout(i).ranks, 2U);
    of(0).leave(i);
    of(1).leave(i);
  }
  EXPECT_TRUE(of(0).open({1, 1}, false, 1));
}

// A rank that is killed has come, or has not; the others never take it for present when it is not.
TEST_F(PollsTest, ARankThatIsKilledKeepsOthersFromHavingAllOrLeavesTheBallotTaken) {
  const Key key{3, 3};
  const auto number = of(0).open(key, false, 1);
  ASSERT_TRUE(number);
  for (const bool comes : {false, true}) {
    const pid_t child = fork();
    if (child == 0) {
      if (comes) (void)come(of(2), key);
      (void)kill(getpid(), SIGKILL);
    }
    int how = 0;
    ASSERT_EQ(waitpid(child, &how, 0), child);
    ASSERT_TRUE(WIFSIGNALED(how));
    EXPECT_EQ(of(0).turnout(*number).ranks, comes ? 2U : 1U);
  }
  of(0).leave(*number);
  EXPECT_EQ(of(0).turnout(*number).ranks, 2U);
  ASSERT_TRUE(of(0).open({3, 4}, false, 1));
}

void PollsTest::play(uint32_t rank, uint64_t round, uint64_t comms, Random& random) {
  struct Comm {
    Key key;
    std::optional<uint32_t> number = {};
    uint64_t seen = 0;
    bool has_met = false;
  };
  const bool stays = round % 2 == 0;
  const Polls polls = of(rank);
  std::vector<Comm> all;
  for (uint64_t i = 0; i < comms; ++i) all.push_back({{1 + i % 4, round * comms + i}});  // four places for all
  random.shuffle(all);
  size_t met = 0;
  for (int look = 0; look < 3 || (stays && met < comms); ++look) {
    for (Comm& one : all) {
      const uint64_t calls = one.key.high;
      if (!one.number) {
        one.number = rank == 0 ? polls.open(one.key, false, calls) : polls.join(one.key, false, calls, one.seen);
      }
      if (one.has_met || !one.number || polls.turnout(*one.number).ranks < ranks) continue;
      one.has_met = true;
      ++met;
      for (auto& counts : shared_->counts) shared_->wrong += counts[*one.number] != calls ? 1 : 0;
    }
    if (stays || random.chance(1, 4)) std::this_thread::yield();
  }
  shared_->met += static_cast<uint32_t>(met);
  random.shuffle(all);
  for (const Comm& one : all) {
    if (one.number) polls.leave(*one.number);
  }
}

// Ranks make and free communicators, each at its own pace and in its own order. In every other round a rank stays until
// all have come. The counts that a rank reads when all have come are those that they wrote for this communicator.
TEST_F(PollsTest, RanksInTheirOwnOrderMeetInEachBallotOnly) {
  constexpr uint64_t rounds = 100;
  constexpr uint64_t comms = 24;
  for_seeds(2, [&](Random& drawn) {
    shared_->met = shared_->wrong = 0;
    const uint64_t seed = drawn.next();
    std::vector<pid_t> children;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      children.push_back(fork());
      if (children.back() != 0) continue;
      Random random(seed, text("rank ", rank));
      for (uint64_t round = 1; round <= rounds; ++round) play(rank, round, comms, random);
      _exit(0);
    }
    for (const pid_t child : children) {
      int how = 0;
      ASSERT_EQ(waitpid(child, &how, 0), child);
      EXPECT_EQ(how, 0);
    }
    EXPECT_EQ(shared_->wrong, 0U);
    EXPECT_GE(shared_->met, rounds / 2 * comms * ranks);
    EXPECT_TRUE(is_empty());
  });
}

}  // namespace
}  // namespace spinloom::mpi
