// The engine against the model: all outcomes of small programs, and random programs.
#include "portals/testbed/explorer.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/testing/seeds.hpp"
#include "portals/model/grammar.hpp"
#include "portals/model/machine.hpp"
#include "portals/model/outcomes.hpp"
#include "portals/model/text.hpp"
#include "portals/testbed/judge.hpp"

namespace spinloom::testbed {
namespace {

// A run of these tests explores one program of so many; SPINLOOM_TEST_CASES=47 explores all.
constexpr uint64_t programs_of_one = 47;
// A program with more outcomes has rare ones, which may take too long to come.
constexpr size_t outcomes_max = 64;
constexpr uint64_t schedules_max = 100'000;
constexpr uint64_t schedules_of_many = 2'000;

uint64_t step_of(uint64_t programs) {
  const char* const cases = std::getenv("SPINLOOM_TEST_CASES");
  const uint64_t more = cases != nullptr ? std::strtoull(cases, nullptr, 10) : 1;
  return std::max<uint64_t>(1, std::min(programs_of_one, programs) / std::max<uint64_t>(1, more));
}

class ExplorerTest : public testing::TestWithParam<model::Grammar> {};

// Where messages meet in memory, the loopback driver moves bytes before anything else, and does not show every order.
void check(const model::Program& program) {
  const auto expected = model::outcomes(program, our_choices);
  ASSERT_TRUE(expected.has_value()) << "the program has more states than the model visits";
  const bool shows_all = expected->size() <= outcomes_max && !model::Traits(program).has_races;
  const auto explored = explore(program, *expected, shows_all ? schedules_max : schedules_of_many);
  ASSERT_TRUE(explored.ok()) << explored.error().message;
  if (!shows_all || explored->missing.empty()) return;
  ADD_FAILURE() << explored->missing.size() << " of " << expected->size() << " outcomes never came in "
                << explored->schedules << " schedules; one of them:\n"
                << model::text_of(program, *explored->missing.begin());
}

TEST_P(ExplorerTest, TheLoopbackDriverShowsWhatTheModelAllows) {
  const model::Grammar& grammar = GetParam();
  const uint64_t programs = model::programs_of(grammar);
  const char* const chosen = std::getenv("SPINLOOM_TEST_SEED");
  const uint64_t first = chosen != nullptr ? std::strtoull(chosen, nullptr, 10) : 0;
  for (uint64_t number = first; number < programs; number += chosen != nullptr ? programs : step_of(programs)) {
    const auto program = model::program_at(grammar, number);
    if (!program) continue;
    SCOPED_TRACE(text("replay: SPINLOOM_TEST_SEED=", number, " spinloom_portals_testbed_test --gtest_filter=*Shows*/",
                      grammar.name, "\n", model::text_of(*program)));
    check(*program);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Grammars, ExplorerTest, testing::ValuesIn(model::grammars()),
                         [](const auto& all) { return std::string(all.param.name); });

// Runs the program under eight random schedules.
void check_schedules(const model::Program& program, Random& random, Judge& judge) {
  for (int schedule = 0; schedule < 8; ++schedule) {
    const auto outcome = run_loopback(program, random.next());
    ASSERT_TRUE(outcome.ok()) << outcome.error().message << '\n' << model::text_of(program);
    ASSERT_EQ(judge.complaint(program, *outcome), "");
  }
}

TEST(Explorer, RandomProgramsDoWhatTheModelAllows) {
  Judge judge;
  for_seeds(400, [&](Random& random) {
    const model::Program program = model::random_program(random, 2, static_cast<uint16_t>(2 + random.below(3)));
    check_schedules(program, random, judge);
  });
  EXPECT_EQ(judge.report(), "");
}

TEST(Explorer, WhatIsSeenOfADeathIsAllowed) {
  Judge judge;
  for_seeds(400, [&](Random& random) {
    model::Program program = model::random_program(random, 2, static_cast<uint16_t>(2 + random.below(3)));
    if (model::Traits(program).has_races) return;  // the dead rank's memory would be read
    program.killed = static_cast<uint16_t>(random.below(2));
    check_schedules(program, random, judge);
  });
  EXPECT_EQ(judge.report(), "");
}

TEST(Explorer, LongHistoriesAreWhatTheModelAllows) {
  Judge judge;
  for_seeds(25, [&](Random& random) {
    const model::Program program = model::random_history(random, 2, static_cast<uint16_t>(1 + random.below(4)), 6);
    const auto outcome = run_loopback(program, random.next());
    ASSERT_TRUE(outcome.ok()) << outcome.error().message << '\n' << model::text_of(program);
    ASSERT_EQ(judge.complaint(program, *outcome), "");
  });
  EXPECT_EQ(judge.report(), "");
}

}  // namespace
}  // namespace spinloom::testbed
