// Words of windows: fences, posts, locks and change locks of ranks that are threads here, and of ranks that have died.
#include "mpi/meeting/window_words.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/shared_heap.hpp"
#include "mpi/entry/spin.hpp"

namespace spinloom::mpi {
namespace {

using Answer = WindowMeeting::Answer;
using Kind = WindowMeeting::Kind;

// Ranks of one window; each has a meeting of its own.
struct Ranks {
  explicit Ranks(size_t count) : alive(count) {
    std::vector<WindowWords::Words*> places;
    for (size_t rank = 0; rank < count; ++rank) {
      words.push_back(WindowWords::make(count));
      places.push_back(words.back().words());
      alive[rank] = true;
    }
    for (size_t rank = 0; rank < count; ++rank) {
      meetings.push_back(
          std::make_unique<WindowMeeting>(rank, places, [this](size_t other) { return alive[other].load(); }));
    }
  }
  WindowMeeting& operator[](size_t rank) { return *meetings[rank]; }

  std::vector<WindowWords> words;
  std::vector<std::atomic<bool>> alive;
  std::vector<std::unique_ptr<WindowMeeting>> meetings;
};

template <class Test>
Answer waited(Test test) {
  Spin spin;
  for (;;) {
    const Answer answer = test();
    if (answer != Answer::not_yet) return answer;
    (void)spin.pause();
  }
}

// Runs body(rank) on a thread for each rank.
template <class Body>
void on_threads(size_t count, Body body) {
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < count; ++rank) threads.emplace_back([&body, rank] { body(rank); });
  for (std::thread& thread : threads) thread.join();
}

TEST(WindowWords, LieInMemoryThatPeersMap) {
  const WindowWords words = WindowWords::make(7);
  ASSERT_NE(words.words(), nullptr);
  EXPECT_TRUE(process_heap().contains(words.words(), WindowWords::bytes_of(7)));
}

TEST(WindowMeeting, AFenceEndsWhenAllHaveCome) {
  Ranks ranks(3);
  for (int round = 0; round < 3; ++round) {
    ranks[0].fence_begin();
    ranks[2].fence_begin();
    EXPECT_EQ(ranks[0].fence_test(), Answer::not_yet);
    ranks[1].fence_begin();
    for (size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks[rank].fence_test(), Answer::done);
  }
}

TEST(WindowMeeting, AFenceTellsThatARankHasDied) {
  Ranks ranks(2);
  ranks[0].fence_begin();
  ranks.alive[1] = false;
  EXPECT_EQ(ranks[0].fence_test(), Answer::dead);
}

TEST(WindowMeeting, StartsMeetPostsInOrder) {
  Ranks ranks(3);
  const std::array targets{1, 2};
  const std::array origin{0};
  for (int round = 0; round < 3; ++round) {
    ranks[0].start(targets);
    ranks[1].post(origin);
    EXPECT_EQ(ranks[0].started_test(), Answer::not_yet);
    ranks[2].post(origin);
    EXPECT_EQ(ranks[0].started_test(), Answer::done);
    EXPECT_EQ(ranks[1].completed_test(), Answer::not_yet);
    ranks[0].complete();
    EXPECT_EQ(ranks[1].completed_test(), Answer::done);
    EXPECT_EQ(ranks[2].completed_test(), Answer::done);
  }
}

TEST(WindowMeeting, SharedLocksAreTogetherAndAnExclusiveOneIsAlone) {
  Ranks ranks(3);
  EXPECT_EQ(ranks[1].lock_test(0, Kind::shared), Answer::done);
  EXPECT_EQ(ranks[2].lock_test(0, Kind::shared), Answer::done);
  EXPECT_EQ(ranks[0].lock_test(0, Kind::exclusive), Answer::not_yet);
  ranks[1].unlock(0, Kind::shared);
  EXPECT_EQ(ranks[1].lock_test(0, Kind::shared), Answer::not_yet) << "an exclusive lock is wanted";
  EXPECT_EQ(ranks[0].lock_test(0, Kind::exclusive), Answer::not_yet);
  ranks[2].unlock(0, Kind::shared);
  EXPECT_EQ(ranks[0].lock_test(0, Kind::exclusive), Answer::done);
  EXPECT_EQ(ranks[2].lock_test(0, Kind::exclusive), Answer::not_yet);
  EXPECT_EQ(ranks[2].lock_test(1, Kind::exclusive), Answer::done) << "each rank's memory has a lock of its own";
  ranks[0].unlock(0, Kind::exclusive);
  EXPECT_EQ(ranks[2].lock_test(0, Kind::exclusive), Answer::done);
}

TEST(WindowMeeting, LocksOfTheDeadAreFree) {
  Ranks ranks(3);
  EXPECT_EQ(ranks[1].lock_test(0, Kind::exclusive), Answer::done);
  EXPECT_EQ(ranks[2].lock_test(0, Kind::shared), Answer::not_yet);
  ranks.alive[1] = false;
  EXPECT_EQ(waited([&] { return ranks[2].lock_test(0, Kind::shared); }), Answer::done);
  ranks.alive[2] = false;
  EXPECT_EQ(waited([&] { return ranks[0].lock_test(0, Kind::exclusive); }), Answer::done);
  ASSERT_TRUE(ranks[1].begin_change(2));
  while (!ranks[0].begin_change(2)) {
  }
}

TEST(WindowMeeting, OnlyOneChangesElements) {
  Ranks ranks(2);
  EXPECT_TRUE(ranks[0].begin_change(1));
  EXPECT_FALSE(ranks[1].begin_change(1));
  EXPECT_TRUE(ranks[1].begin_change(0));
  ranks[0].end_change(1);
  EXPECT_TRUE(ranks[1].begin_change(1));
}

TEST(WindowMeeting, NobodyLooksAtWordsThatARankHasLeft) {
  Ranks ranks(2);
  ranks[0].leave_begin();
  EXPECT_EQ(ranks[0].leave_test(), Answer::not_yet);
  EXPECT_EQ(ranks[1].leave_test(), Answer::done);
  ranks[1].leave_begin();
  EXPECT_EQ(ranks[0].leave_test(), Answer::done);
}

// Plain numbers, which only the locks protect.
TEST(WindowMeeting, LocksKeepThreadsApart) {
  constexpr size_t count = 4;
  constexpr int rounds = 2000;
  Ranks ranks(count);
  uint64_t exclusive = 0;
  uint64_t changed = 0;
  on_threads(count, [&](size_t rank) {
    for (int round = 0; round < rounds; ++round) {
      const Kind kind = (static_cast<size_t>(round) + rank) % 3 == 0 ? Kind::exclusive : Kind::shared;
      (void)waited([&] { return ranks[rank].lock_test(0, kind); });
      const uint64_t before = exclusive;
      if (kind == Kind::exclusive) exclusive = before + 1;
      EXPECT_EQ(exclusive, before + (kind == Kind::exclusive ? 1 : 0));
      ranks[rank].unlock(0, kind);
      (void)waited([&] { return ranks[rank].begin_change(1) ? Answer::done : Answer::not_yet; });
      ++changed;
      ranks[rank].end_change(1);
      ranks[rank].fence_begin();
      EXPECT_EQ(waited([&] { return ranks[rank].fence_test(); }), Answer::done);
    }
  });
  EXPECT_EQ(changed, count * rounds);
  EXPECT_GT(exclusive, count * rounds / 4);
}

}  // namespace
}  // namespace spinloom::mpi
