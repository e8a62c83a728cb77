#include "goal/patterns.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "goal/loggopsim.hpp"
#include "goal/test_support.hpp"
#include "schedule/check.hpp"

namespace spinloom::goal {
namespace {

using schedule::Schedule;

Schedule must_make(std::string_view name, uint32_t ranks, uint64_t bytes) {
  auto made = make_pattern(name, ranks, bytes);
  EXPECT_TRUE(made) << (made ? "" : made.error().message);
  return made ? std::move(*made) : Schedule();
}

uint64_t makespan(std::string_view name, uint32_t ranks, uint64_t bytes, const LogGopSimParameters& parameters) {
  const auto outcome = run_loggopsim(must_make(name, ranks, bytes), parameters);
  EXPECT_TRUE(outcome) << (outcome ? "" : outcome.error().message);
  return outcome ? outcome->makespan : 0;
}

// P = 2^k ranks, eager, o >= g:  T = k (2 o + L + (s - 1) G)
TEST(Patterns, BinomialBroadcastAndDisseminationTakeRounds) {
  for (const LogGopSimParameters& p :
       {LogGopSimParameters{}, LogGopSimParameters{.L = 700, .o = 40, .g = 40, .G = 3}}) {
    for (uint32_t rounds = 1; rounds <= 12; ++rounds) {
      for (const uint64_t bytes : {1, 24, 5000}) {
        const uint64_t expected = rounds * (2 * p.o + p.L + (bytes - 1) * p.G);
        EXPECT_EQ(makespan("binomial_broadcast", 1U << rounds, bytes, p), expected);
        EXPECT_EQ(makespan("dissemination", 1U << rounds, bytes, p), expected);
      }
    }
  }
}

// All messages come at o + L; the root takes one after the other, each max(o, g) + (s - 1) G after the one before.
TEST(Patterns, AGatherIsTakenOneByOne) {
  for (const uint64_t g : {500, 4000}) {
    const LogGopSimParameters p{.g = g};
    const uint64_t bytes = 11;
    const uint64_t each = std::max(p.o, p.g) + (bytes - 1) * p.G;
    EXPECT_EQ(makespan("linear_gather", 1000, bytes, p), p.o + p.L + 998 * each + p.o + (bytes - 1) * p.G);
  }
}

// Ring of 1-byte messages, o >= g:  T = 2 (P - 1) (2 o + L)
TEST(Patterns, ARingTakesItsSteps) {
  EXPECT_EQ(makespan("ring_allreduce", 9, 9, {}), 2 * 8 * (2 * 1500 + 2500));
  EXPECT_EQ(makespan("ring_allreduce", 9, 3, {}), 2 * 8 * (2 * 1500 + 2500));
}

TEST(Patterns, AllAreWholeAndAsTheNaiveEngineSays) {
  for (const std::string_view name : pattern_names()) {
    for (const uint32_t ranks : {2, 3, 4, 7, 8, 13, 16, 41, 64}) {
      if (name == "recursive_doubling_allreduce" && (ranks & (ranks - 1)) != 0) continue;
      for (const uint64_t bytes : {0, 1, 700, 100'000'000}) {
        SCOPED_TRACE(text(name, " ", ranks, " ", bytes));
        const Schedule made = must_make(name, ranks, bytes);
        const auto whole = schedule::check(made);
        EXPECT_TRUE(whole) << whole.error().message;
        test::compare(made, {});
        test::compare(made, {.L = 1000, .o = 200, .g = 900, .G = 2});
      }
    }
  }
}

TEST(Patterns, RanksShareProgramsAndEveryRankHasItsPart) {
  EXPECT_LE(must_make("dissemination", 1000, 1).bytes(), 5000);
  EXPECT_LE(must_make("binomial_broadcast", 1 << 16, 1).programs().size(), 18);
  EXPECT_LE(must_make("linear_alltoall", 64, 1).programs().size(), 2);
  // One message into each rank but the root.
  EXPECT_EQ(must_make("binomial_broadcast", 1000, 1).operations(), 2 * 999);
  EXPECT_EQ(must_make("binomial_reduce", 1000, 1).operations(), 2 * 999);
  EXPECT_EQ(must_make("linear_barrier", 1000, 1).operations(), 4 * 999 + 1);
  EXPECT_EQ(must_make("linear_scatter", 1000, 1).operations(), 2 * 999);
}

TEST(Patterns, ErrorsNameWhatToGive) {
  const auto message = [](std::string_view name, uint32_t ranks) {
    const auto made = make_pattern(name, ranks, 8);
    return made ? "" : made.error().message;
  };
  EXPECT_EQ(
      message("star", 4),
      "there is no pattern 'star'; the patterns are dissemination, binomial_broadcast, binomial_reduce, linear_gather, "
      "linear_scatter, pairwise_exchange, linear_alltoall, ring_allreduce, recursive_doubling_allreduce, "
      "linear_barrier");
  EXPECT_EQ(message("dissemination", 1), "dissemination of 1 ranks: give 2 to 536870912 ranks");
  EXPECT_EQ(message("recursive_doubling_allreduce", 6), "recursive_doubling_allreduce of 6 ranks: give a power of two");
}

}  // namespace
}  // namespace spinloom::goal
