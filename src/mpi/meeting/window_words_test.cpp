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

TEST(WindowMeeting, SharedLocksOfAllRanksComeAtOnceAndKeepExclusiveOnesAway) {
  Ranks ranks(3);
  EXPECT_EQ(ranks[1].lock_all_test(), Answer::done);
  EXPECT_EQ(ranks[2].lock_all_test(), Answer::done);
  EXPECT_EQ(ranks[2].lock_test(0, Kind::shared), Answer::done) << "shared locks go together";
  ranks[2].unlock(0, Kind::shared);
  EXPECT_EQ(ranks[0].lock_test(0, Kind::exclusive), Answer::not_yet);
  ranks[1].unlock_all();
  EXPECT_EQ(ranks[0].lock_test(0, Kind::exclusive), Answer::not_yet);
  EXPECT_EQ(ranks[1].lock_all_test(), Answer::not_yet) << "an exclusive lock is wanted";
  ranks[2].unlock_all();
  EXPECT_EQ(ranks[0].lock_test(0, Kind::exclusive), Answer::done);
  EXPECT_EQ(ranks[1].lock_all_test(), Answer::not_yet);
  ranks[0].unlock(0, Kind::exclusive);
  EXPECT_EQ(ranks[1].lock_all_test(), Answer::done);
  ranks.alive[1] = false;
  EXPECT_EQ(ranks[0].lock_test(2, Kind::exclusive), Answer::done) << "rank 1 has died";
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

TEST(WindowMeeting, WordsAreGivenOutAgainWhenAllOthersHaveLeftThem) {
  Ranks ranks(3);
  WindowWords::Words* const first = ranks.words[0].words();
  first->of(1).reads.store(1);
  WindowWords::retire(std::move(ranks.words[0]), 3);
  ranks[1].leave();
  const WindowWords another = WindowWords::make(3);
  EXPECT_NE(another.words(), first) << "rank 2 still looks at them";
  ranks[2].leave();
  const WindowWords of_others = WindowWords::make(4);
  EXPECT_NE(of_others.words(), first);
  const WindowWords again = WindowWords::make(3);
  EXPECT_EQ(again.words(), first);
  EXPECT_EQ(again.words()->left.load(), 0U);
  EXPECT_EQ(again.words()->of(1).reads.load(), 0U);
}

TEST(WindowMeeting, WhoSleepsIsWokenByWhatItWaitsFor) {
  constexpr int rounds = 200;
  Ranks ranks(2);
  std::atomic<int> slept = 0;
  const auto sleep_until = [&](size_t rank, std::optional<size_t> lock_of, auto test) {
    Answer answer = test();
    while (answer == Answer::not_yet) {
      ++slept;
      ranks[rank].sleep([&] { return (answer = test()) == Answer::not_yet; }, lock_of);
      if (answer == Answer::not_yet) answer = test();
    }
    EXPECT_EQ(answer, Answer::done);
  };
  const std::array other_of{std::array{1}, std::array{0}};
  on_threads(2, [&](size_t rank) {
    for (int round = 0; round < rounds; ++round) {
      ranks[rank].fence_begin();
      sleep_until(rank, {}, [&] { return ranks[rank].fence_test(); });
      sleep_until(rank, 0, [&] { return ranks[rank].lock_test(0, Kind::exclusive); });
      ranks[rank].unlock(0, Kind::exclusive);
      ranks[rank].post(other_of[rank]);
      ranks[rank].start(other_of[rank]);
      sleep_until(rank, {}, [&] { return ranks[rank].started_test(); });
      ranks[rank].complete();
      sleep_until(rank, {}, [&] { return ranks[rank].completed_test(); });
    }
  });
  EXPECT_GT(slept.load(), 0);
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ranks.words[rank].words()->sleepers.load(), 0U);
    EXPECT_EQ(ranks.words[rank].words()->waiters.load(), 0U);
  }
}

// Nobody rings until the sleeper waits: it must be the bell that ends the sleep.
TEST(WindowMeeting, ABellEndsASleepThatHasBegun) {
  Ranks ranks(2);
  ranks[0].fence_begin();
  const uint32_t before = ranks.words[0].words()->bell.load();
  ranks[0].sleep([&] {
    EXPECT_EQ(ranks[0].fence_test(), Answer::not_yet);
    ranks[1].fence_begin();
    return true;
  });
  EXPECT_EQ(ranks.words[0].words()->bell.load(), before + 1);
  EXPECT_EQ(ranks[0].fence_test(), Answer::done);
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
      const bool takes_all = kind == Kind::shared && rank % 2 == 1;
      (void)waited([&] { return takes_all ? ranks[rank].lock_all_test() : ranks[rank].lock_test(0, kind); });
      const uint64_t before = exclusive;
      if (kind == Kind::exclusive) exclusive = before + 1;
      EXPECT_EQ(exclusive, before + (kind == Kind::exclusive ? 1 : 0));
      takes_all ? ranks[rank].unlock_all() : ranks[rank].unlock(0, kind);
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
