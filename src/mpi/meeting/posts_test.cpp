// Posts of windows: what an origin reads of them.
#include "mpi/meeting/posts.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <thread>
#include <vector>

#include "base/shared_heap.hpp"

namespace spinloom::mpi {
namespace {

const Posts::Count& count_of(const Posts& posts, int origin) {
  return *reinterpret_cast<const Posts::Count*>(posts.address() + Posts::offset_of(origin));  // NOLINT: an address
}

TEST(Posts, LieInMemoryThatPeersMap) {
  const Posts posts = Posts::make(5);
  ASSERT_NE(posts.address(), 0U);
  EXPECT_TRUE(
      process_heap().contains(reinterpret_cast<const void*>(posts.address()), 5 * sizeof(Posts::Count)));  // NOLINT
}

TEST(Posts, AreCountedForThoseInTheirGroupsOnly) {
  const Posts posts = Posts::make(4);
  posts.add(std::array{1, 3});
  posts.add(std::array{3});
  posts.add(std::span<const int>());
  const std::array<uint64_t, 4> expected{0, 1, 0, 2};
  for (int origin = 0; origin < 4; ++origin) EXPECT_EQ(count_of(posts, origin).load(), expected[size_t(origin)]);
  posts.take_back(std::array{3});
  EXPECT_EQ(count_of(posts, 3).load(), 1U);
  EXPECT_EQ(count_of(posts, 1).load(), 1U);
}

TEST(Posts, BeginAtZeroInMemoryThatWasUsed) {
  for (int turn = 0; turn < 3; ++turn) {
    const Posts posts = Posts::make(3);
    for (int origin = 0; origin < 3; ++origin) EXPECT_EQ(count_of(posts, origin).load(), 0U);
    posts.add(std::array{0, 1, 2});
  }
}

TEST(Posts, MovedAreTheSame) {
  Posts first = Posts::make(2);
  first.add(std::array{1});
  const uint64_t address = first.address();
  const Posts second = std::move(first);
  EXPECT_EQ(second.address(), address);
  EXPECT_EQ(count_of(second, 1).load(), 1U);
}

TEST(Posts, ShowWhatWasWrittenBefore) {
  constexpr uint64_t turns = 20'000;
  const Posts posts = Posts::make(2);
  const Posts answers = Posts::make(2);
  uint64_t word = 0;
  uint64_t wrong = 0;
  std::thread origin([&] {
    for (uint64_t turn = 1; turn <= turns; ++turn) {
      while (count_of(posts, 1).load(std::memory_order_acquire) < turn) std::this_thread::yield();
      wrong += word != turn ? 1 : 0;
      answers.add(std::array{0});
    }
  });
  for (uint64_t turn = 1; turn <= turns; ++turn) {
    word = turn;
    posts.add(std::array{1});
    while (count_of(answers, 0).load(std::memory_order_acquire) < turn) std::this_thread::yield();
  }
  origin.join();
  EXPECT_EQ(wrong, 0U);
}

}  // namespace
}  // namespace spinloom::mpi
