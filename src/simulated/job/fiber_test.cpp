// Fibers keep their stacks, their errno, and their place.
#include "simulated/job/fiber.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

namespace spinloom::job {
namespace {

constexpr size_t stack_bytes = 64 << 10;

TEST(Fiber, TwoOfThemTakeTurns) {
  std::vector<int> seen;
  std::unique_ptr<Fiber> fibers[2];
  for (int which = 0; which < 2; ++which) {
    auto made = Fiber::create(stack_bytes, [&, which] {
      for (int turn = 0; turn < 3; ++turn) {
        const int before = turn * 10 + which;
        seen.push_back(before);
        fibers[which]->yield();
      }
    });
    ASSERT_TRUE(made.ok());
    fibers[which] = std::move(*made);
  }
  while (!fibers[0]->ended() || !fibers[1]->ended()) {
    for (auto& fiber : fibers) {
      if (!fiber->ended()) fiber->resume();
    }
  }
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 10, 11, 20, 21}));
}

TEST(Fiber, ErrnoIsItsOwn) {
  std::unique_ptr<Fiber> fiber;
  int inside = -1;
  auto made = Fiber::create(stack_bytes, [&] {
    errno = ENOENT;
    fiber->yield();
    inside = errno;
  });
  ASSERT_TRUE(made.ok());
  fiber = std::move(*made);
  errno = EAGAIN;
  fiber->resume();
  EXPECT_EQ(errno, EAGAIN);
  errno = EPIPE;
  fiber->resume();
  EXPECT_EQ(inside, ENOENT);
  EXPECT_EQ(errno, EPIPE);
}

TEST(Fiber, KnowsWhatGuardsItsStack) {
  std::unique_ptr<Fiber> fiber;
  const char* inside = nullptr;
  auto made = Fiber::create(stack_bytes, [&] {
    const char here = 0;
    inside = &here;
  });
  ASSERT_TRUE(made.ok());
  fiber = std::move(*made);
  fiber->resume();
  EXPECT_FALSE(fiber->guards(inside));
  EXPECT_TRUE(fiber->ended());
  EXPECT_TRUE(fiber->guards(inside - stack_bytes));
}

}  // namespace
}  // namespace spinloom::job
