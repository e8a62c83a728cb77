// The numbers of CPUs and NICs: 32 bits, with gaps, and a limit of how many there are.
#include "predict/goal/model/places.hpp"

#include <gtest/gtest.h>

#include "predict/goal/nics/fidelity.hpp"
#include "predict/goal/testing/model.hpp"
#include "simulated/node/testing/profile.hpp"

namespace spinloom::goal {
namespace {

using namespace test;
using schedule::Shape;

// Returns the same schedule with other numbers of CPUs and NICs, in the same order.
Schedule renumbered(const Schedule& given, uint32_t factor, uint32_t first) {
  Schedule::Parts parts;
  for (uint32_t rank = 0; rank < given.ranks(); ++rank) parts.program_of.push_back(given.number_of_program(rank));
  parts.programs = given.programs();
  parts.shapes = given.shapes();
  for (Shape& shape : parts.shapes) {
    shape.cpu = first + factor * shape.cpu;
    shape.nic = first + factor * shape.nic;
  }
  return Schedule(std::move(parts));
}

TEST(Places, ThereIsOneOfEachAtLeast) {
  const Places none{Schedule(3)};
  EXPECT_EQ(none.cpus(), 1U);
  EXPECT_EQ(none.nics(), 1U);
}

TEST(Places, NumbersWithGapsMeanTheSame) {
  test::for_seeds(300, [](Random& random) {
    const Schedule schedule = random_schedule(random, random.between(1, 20), Sizes::usual);
    const Schedule other = renumbered(schedule, static_cast<uint32_t>(random.between(1, 1U << 30)), 7);
    const auto one = run(schedule, {});
    const auto again = run(other, {});
    ASSERT_EQ(one.ok(), again.ok());
    if (one) {
      EXPECT_EQ(one->finish_ps, again->finish_ps);
    }
    const auto theirs = run_loggopsim(schedule, {});
    const auto theirs_again = run_loggopsim(other, {});
    ASSERT_EQ(theirs.ok(), theirs_again.ok());
    if (theirs) {
      EXPECT_EQ(theirs->host_times, theirs_again->host_times);
    }
  });
}

TEST(Places, CpusOfLargeNumbersRunAtEachFidelity) {
  const std::string goal =
      "num_ranks 2\nrank 0 {\na: calc 5 cpu 4294967295\nb: send 8b to 1 cpu 1000\nb requires a\n}\n"
      "rank 1 {\nr: recv 8b from 0 cpu 70000\nc: calc 4 cpu 4294967295\nc requires r\n}\n";
  const Schedule schedule = *schedule::read_goal(goal);
  const auto message = run(schedule, {});
  ASSERT_TRUE(message) << message.error().message;
  EXPECT_EQ(message->finish_ps[1], 5000 + o + L + 7 * G + o + 4000);
  for (const Fidelity fidelity : {Fidelity::nic, Fidelity::full}) {
    const auto outcome = run_on(fidelity, simulated::test_profile(), schedule, {});
    ASSERT_TRUE(outcome) << outcome.error().message;
    EXPECT_EQ(outcome->compute_ps, (std::vector<uint64_t>{5000, 4000}));
  }
}

TEST(Places, TooManyAreAnErrorAndTakeNoMemory) {
  Schedule schedule(1 << 20);
  schedule::Builder builder;
  for (uint32_t cpu = 0; cpu < 300; ++cpu) builder.add(schedule.intern_shape({.size = 1, .cpu = cpu}), 0);
  schedule.intern(0, builder.take());
  const std::string sentence =
      "the schedule names 300 CPUs and 1 NICs for each of 1048576 ranks; a run has 268435456 of all ranks at most "
      "(places_max)";
  for (const Error& error : {run(schedule, {}).error(), run_loggopsim(schedule, {}).error()}) {
    EXPECT_EQ(error.code, Code::exhausted);
    EXPECT_EQ(error.message, sentence);
  }
}

}  // namespace
}  // namespace spinloom::goal
