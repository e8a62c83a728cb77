// Counters are kept only for the operations that are under way.
#include "predict/goal/model/counter_windows.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.hpp"
#include "base/testing/seeds.hpp"

namespace spinloom::goal {
namespace {

using schedule::Awaits;
using schedule::Builder;
using schedule::Join;
using schedule::Program;

// A chain, in which operation i + 1 waits for operation i, uses the smallest window however long it is.
TEST(CounterWindows, AChainNeedsNoMoreThanTheLeast) {
  Builder builder;
  for (uint32_t one = 0; one < 100'000; ++one) {
    (void)builder.add(0, 0);
    if (one > 0) builder.require(one, one - 1, Awaits::end);
  }
  const Program program = builder.take();
  CounterWindows windows;
  const uint32_t window = windows.open(program);
  for (uint32_t one = 1; one < program.size(); ++one) {
    Counter* const counter = windows.counter_of(window, program, one);
    ASSERT_NE(counter, nullptr);
    ASSERT_EQ(counter->pending, 1U);
    counter->pending = 0;
    ASSERT_EQ(windows.counter_count(), 8U);
  }
  EXPECT_EQ(windows.counter_of(window, program, 3), nullptr);
}

// An edge from 0 to 1,000 needs all between them, and the next power of two.
TEST(CounterWindows, AFarEdgeNeedsWhatIsBetween) {
  Builder builder;
  for (uint32_t one = 0; one < 100'000; ++one) {
    (void)builder.add(0, 0);
    if (one > 0) builder.require(one, one - 1, Awaits::end);
  }
  builder.require(1000, 0, Awaits::end);
  const Program program = builder.take();
  CounterWindows windows;
  const uint32_t window = windows.open(program);
  for (uint32_t one = 1; one < program.size(); ++one) {
    Counter* const counter = windows.counter_of(window, program, one);
    ASSERT_EQ(counter->pending, one == 1000 ? 2U : 1U) << one;
    counter->pending = 0;
  }
  // Rings of 8 and of 1,024.
  EXPECT_EQ(windows.counter_count(), 8U + 1024U);
}

// Wherever edges lead, an operation's Counter at its first use is the number that waits() gives.
TEST(CounterWindows, CountWhatProgramsSay) {
  for_seeds(400, [](Random& random) {
    const auto size = static_cast<uint32_t>(1 + random.below(60));
    const bool is_forward = random.chance(1, 2);
    Builder builder;
    for (uint32_t one = 0; one < size; ++one) (void)builder.add(0, 0);
    for (uint64_t left = random.below(3 * size); left > 0; --left) {
      auto before = static_cast<uint32_t>(random.below(size));
      auto after = static_cast<uint32_t>(random.below(2 * size));
      if (before == after) continue;
      if (is_forward && after < before) std::swap(before, after);
      builder.require(after, before, random.chance(1, 3) ? Awaits::start : Awaits::end,
                      random.chance(1, 4) ? Join::first : Join::all);
    }
    const Program program = builder.take(static_cast<uint32_t>(1 + random.below(4)));
    const std::vector<uint32_t> waits = program.dependency_counts();
    CounterWindows windows;
    const uint32_t window = windows.open(program);
    for (uint32_t one = 0; one < program.size(); ++one) {
      Counter* const counter = windows.counter_of(window, program, one);
      ASSERT_EQ(counter == nullptr ? 0 : counter->pending, waits[one]) << one;
      if (counter != nullptr) counter->pending = 0;
    }
    windows.close(window);
  });
}

}  // namespace
}  // namespace spinloom::goal
