// The algebra of the model by hand, and random schedules against the naive engine.
#include "predict/goal/testing/model.hpp"

#include <gtest/gtest.h>

#include "predict/goal/loggopsim/loggopsim.hpp"
#include "predict/goal/patterns/patterns.hpp"

namespace spinloom::goal {
namespace {

using namespace test;

TEST(Model, OneMessage) {
  // T = c + L + (s - 1) G + c with c = o + (s - 1) O; its sender is done after c.
  const std::string goal = "num_ranks 2\nrank 0 {\nsend 1000b to 1\n}\nrank 1 {\nrecv 1000b from 0\n}\n";
  EXPECT_EQ(finish_of(goal), Times({o, o + L + 999 * G + o}));
  const uint64_t c = o + 999 * 7000;
  EXPECT_EQ(finish_of(goal, {.O = {7000, 1}}), Times({c, c + L + 999 * G + c}));
  // A rate of 20/3 ps for each byte: 999 bytes take 6660 ps. One of 100/7 takes 14271.4, rounded up.
  EXPECT_EQ(finish_of(goal, {.G = {20, 3}}), Times({o, o + L + 6660 + o}));
  EXPECT_EQ(finish_of(goal, {.G = {100, 7}}), Times({o, o + L + 14272 + o}));
}

TEST(Model, NoByteAndOneByteCostTheSame) {
  for (const char* const size : {"0", "1"}) {
    const std::string goal =
        text("num_ranks 2\nrank 0 {\na: send ", size, "b to 1\nb: send ", size,
             "b to 1\nb requires a\n}\nrank 1 {\nrecv ", size, "b from 0\nrecv ", size, "b from 0\n}\n");
    // The second leaves o after the first one, since o > g.
    EXPECT_EQ(finish_of(goal, {.O = {9000, 1}}), Times({2 * o, o + L + o + o}));
  }
}

TEST(Model, TheNicSendsOneMessageAfterTheOther) {
  // Its CPU is free after k o; the last of k messages leaves (k - 1) (g + (s - 1) G) after the first.
  const uint64_t k = 5;
  const uint64_t slot = g + 9999 * G;
  std::string goal = "num_ranks 6\nrank 0 {\n";
  for (uint64_t to = 1; to <= k; ++to) goal += text("send 10000b to ", to, "\n");
  goal += "}\n";
  for (uint64_t to = 1; to <= k; ++to) goal += text("rank ", to, " {\nrecv 10000b from 0\n}\n");
  const Times finish = finish_of(goal);
  EXPECT_EQ(finish[0], k * o);
  for (uint64_t to = 1; to <= k; ++to) EXPECT_EQ(finish[to], o + (to - 1) * slot + L + 9999 * G + o) << to;
}

TEST(Model, ASinkTakesOneMessageAfterTheOther) {
  // k senders at once: the last is there (k - 1) (g + (s - 1) G) after the first; the CPU works for o each.
  const auto made = make_pattern("linear_gather", 9, 10000);
  ASSERT_TRUE(made);
  const auto outcome = run(*made, {});
  ASSERT_TRUE(outcome);
  const uint64_t slot = g + 9999 * G;
  static_assert(slot > o);
  EXPECT_EQ(outcome->finish_ps[0], o + L + 7 * slot + 9999 * G + o);
  EXPECT_EQ(outcome->overhead_ps[0], 8 * o);
  EXPECT_EQ(outcome->compute_ps[0], 0);
  // Short messages keep the CPU busy, not the NIC.
  const auto brief = run(*make_pattern("linear_gather", 9, 1), {});
  EXPECT_EQ(brief->finish_ps[0], o + L + 8 * o);
}

TEST(Model, ARendezvousGoesThereAndBackAndThere) {
  // T = o + L + w + L + (s - 1) G + L + o; the send ends when its last byte has left.
  const std::string early =
      "num_ranks 2\nrank 0 {\ns: send 70000b to 1\nc: calc 5\nc requires s\n}\nrank 1 {\nrecv 70000b from 0\n}\n";
  EXPECT_EQ(finish_of(early), Times({o + L + L + 69999 * G + 5000, o + L + L + 69999 * G + L + o}));
  const uint64_t wait = 1'000'000'000;
  const std::string late =
      "num_ranks 2\nrank 0 {\nsend 70000b to 1\n}\nrank 1 {\nc: calc 1000000\nr: recv 70000b from 0\nr requires c\n}\n";
  EXPECT_EQ(finish_of(late), Times({wait + L + 69999 * G, wait + L + 69999 * G + L + o}));
  // The sender's size decides, whatever the receiver expects.
  const std::string smaller = "num_ranks 2\nrank 0 {\nsend 70000b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n";
  EXPECT_EQ(finish_of(smaller), Times({o + L + L + 69999 * G, o + L + L + 69999 * G + L + o}));
  const std::string larger = "num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\nrecv 70000b from 0\n}\n";
  EXPECT_EQ(finish_of(larger), Times({o, o + L + 7 * G + o}));
}

TEST(Model, ALaterMessageDoesNotOvertake) {
  // The request of the second message queues behind the bytes of the first, so that each receive has its own size.
  const std::string goal =
      "num_ranks 2\nrank 0 {\na: send 60000b to 1\nb: send 70000b to 1\nb requires a\n}\n"
      "rank 1 {\na: recv 60000b from 0\nb: recv 70000b from 0\nc: calc 5\nc requires a\n}\n";
  const uint64_t there = o + L + 59999 * G;  // the first
  const uint64_t asked = o + 59999 * G + g + L;  // the second
  EXPECT_EQ(finish_of(goal)[1], asked + L + 69999 * G + L + o);
  EXPECT_EQ(outcome_of(goal).compute_ps[1], 5000);
  EXPECT_LT(there, asked);
}

// Rules: GOAL-27.
TEST(Model, ASuccessorOnAnotherCpuWaitsForTheEnd) {
  // 100 on CPU 0, then 4 on CPU 1, which had worked for 3 only.
  const std::string goal = "num_ranks 1\nrank 0 {\na: calc 100\ncalc 3 cpu 1\nc: calc 4 cpu 1\nc requires a\n}\n";
  const Outcome outcome = outcome_of(goal, {.unit_ps = 500});
  EXPECT_EQ(outcome.finish_ps, Times({104 * 500}));
  EXPECT_EQ(outcome.compute_ps, Times({107 * 500}));
}

TEST(Model, TheReceiveTakesItsOwnCpu) {
  // Sent from CPU 1 and received on CPU 0, which is busy for 100000 ns.
  const std::string goal =
      "num_ranks 2\nrank 0 {\nsend 1b to 1 cpu 1\n}\nrank 1 {\nr: recv 1b from 0\nc: calc 100000\nc irequires r\n}\n";
  EXPECT_EQ(finish_of(goal), Times({o, 100'000'000 + o}));
}

TEST(Model, AReceiveIsPostedByItsCpu) {
  // Rank 1 computes first, so that the request waits.
  const std::string goal =
      "num_ranks 2\nrank 0 {\nsend 70000b to 1\n}\n"
      "rank 1 {\nw: calc 0\nc: calc 100000\nr: recv 70000b from 0\nc irequires w\nr requires w\nr irequires c\n}\n";
  EXPECT_EQ(finish_of(goal), Times({100'000'000 + L + 69999 * G, 100'000'000 + L + 69999 * G + L + o}));
}

TEST(Model, WhoWaitsLongestComesFirst) {
  // The message is there at 4000 ns, while the first of two computations runs; the second is free when it ends.
  const std::string goal =
      "num_ranks 2\nrank 0 {\nsend 1b to 1\n}\n"
      "rank 1 {\nr: recv 1b from 0\na: calc 10000\na irequires r\nb: calc 20000\nb requires a\nd: calc 7\nd requires "
      "r\n"
      "}\n";
  // receive's overhead at 10000, then b, which was free before d.
  EXPECT_EQ(finish_of(goal)[1], 10'000'000 + o + 20'000'000 + 7000);
}

TEST(Model, TheFirstOfSeveralLeadsOn) {
  // A receive begins the third operation when the message is there and its CPU has worked, or the timer does:
  // T = min(o + L + (s - 1) G + o, t) + 4.
  const auto goal = [](uint64_t t) {
    return text("num_ranks 2\nrank 0 {\nsend 1000b to 1\n}\nrank 1 {\nr: recv 1000b from 0\nt: calc ", t,
                " cpu 1\nc: calc 4 cpu 2\nc anyof r\nc anyof t\n}\n");
  };
  const uint64_t there = o + L + 999 * G + o;
  EXPECT_EQ(finish_of(goal(there / 1000 + 1000))[1], there + 1'000'000);
  EXPECT_EQ(finish_of(goal(5000))[1], there);
  const auto begins = [&](uint64_t t) {
    Record record;
    EXPECT_TRUE(run(*schedule::read_goal(goal(t)), {}, &record));
    return record.of(1, 2).begin_ps;
  };
  EXPECT_EQ(begins(5000), 5'000'000);
  EXPECT_EQ(begins(100'000), there);
  // Ends are known when work begins; one that begins later may end before: a works for 100, b from 10 to 30.
  EXPECT_EQ(finish_of("num_ranks 1\nrank 0 {\na: calc 100\nw: calc 10 cpu 1\nb: calc 20 cpu 1\nb requires w\n"
                      "c: calc 200 cpu 2\nc anyof a\nc anyof b\n}\n"),
            Times({230'000}));
  // All-of edges and any-of edges: max(60, min(100, 30)).
  EXPECT_EQ(finish_of("num_ranks 1\nrank 0 {\na: calc 100\nb: calc 30 cpu 1\nd: calc 60 cpu 3\n"
                      "c: calc 200 cpu 2\nc anyof a\nc anyof b\nc requires d\n}\n"),
            Times({260'000}));
  // The begin of a is the first: `ianyof`.
  EXPECT_EQ(finish_of("num_ranks 1\nrank 0 {\na: calc 100\nb: calc 30 cpu 1\nc: calc 200 cpu 2\nc ianyof a\n"
                      "c anyof b\n}\n"),
            Times({200'000}));
  // An operation that one any-of edge has freed may free another operation that could have freed it.
  EXPECT_EQ(
      finish_of("num_ranks 1\nrank 0 {\na: calc 1\nb: calc 2\nc: calc 3\nb anyof a\nb anyof c\nc requires b\n}\n"),
      Times({6000}));
}

TEST(Model, TheDialectKnowsNoFirstOfSeveral) {
  const auto read = schedule::read_goal("num_ranks 1\nrank 0 {\na: calc 1\nb: calc 2\nb anyof a\n}\n");
  const auto outcome = run_loggopsim(*read, {});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Code::unsupported);
  EXPECT_EQ(
      outcome.error().message,
      "operation 1 of rank 0 waits for the first of several, which LogGOPSim does not know; run it by our own model");
}

TEST(Model, NoiseMakesWorkLonger) {
  // Away for 10 of each 100 us, from the start on: 270 us of work are 3 times 90, so that they end at 300 us; the
  // next ps of work waits for 10 us more.
  const auto calc = [](uint64_t ps) {
    return outcome_of(text("num_ranks 1\nrank 0 {\ncalc ", ps, "\n}\n"),
                      {.unit_ps = 1, .noise = Noise{100'000'000, 10'000'000, 1, true}})
        .finish_ps[0];
  };
  EXPECT_EQ(calc(0), 0);
  EXPECT_EQ(calc(1), 10'000'001);
  EXPECT_EQ(calc(270'000'000), 300'000'000);
  EXPECT_EQ(calc(270'000'001), 310'000'001);
  // One of many ranks is always away: all wait for it, if they are not away together.
  const auto made = make_pattern("dissemination", 256, 8);
  const uint64_t quiet = run(*made, {})->makespan_ps;
  const uint64_t is_synchronised = run(*made, {.noise = Noise{100'000'000, 10'000'000, 1, true}})->makespan_ps;
  const uint64_t apart = run(*made, {.noise = Noise{100'000'000, 10'000'000, 1, false}})->makespan_ps;
  EXPECT_EQ(quiet, 8 * (2 * o + L + 7 * G));
  EXPECT_EQ(is_synchronised, quiet + 10'000'000);
  EXPECT_GT(apart, is_synchronised);
  EXPECT_EQ(run(*made, {.noise = Noise{5, 5, 1, false}}).error().code, Code::invalid);
}

// Rules: GOAL-78.
TEST(Model, PatternsHaveTheirClosedForms) {
  // k rounds of 2 o + L + (s - 1) G, as in LogGopSim.
  for (const char* const name : {"dissemination", "binomial_broadcast", "recursive_doubling_allreduce"}) {
    const auto made = make_pattern(name, 256, 100);
    ASSERT_TRUE(made);
    EXPECT_EQ(run(*made, {})->makespan_ps, 8 * (2 * o + L + 99 * G)) << name;
    EXPECT_EQ(1000 * run_loggopsim(*made, {})->makespan, 8 * (2 * o + L + 99 * G)) << name;
  }
}

TEST(Model, ATimeThatDoesNotFitIsAnError) {
  const auto error = [](const std::string& goal, const Model& model) {
    const auto outcome = run(*schedule::read_goal(goal), model);
    EXPECT_FALSE(outcome);
    return outcome ? Code::invalid : outcome.error().code;
  };
  const std::string huge = "num_ranks 1\nrank 0 {\ncalc 18446744073709551615\n}\n";
  EXPECT_EQ(error(huge, {}), Code::overflow);
  const std::string pair = "num_ranks 2\nrank 0 {\nsend 18446744073709551615b to 1\n}\nrank 1 {\nrecv 1b from 0\n}\n";
  EXPECT_EQ(error(pair, {}), Code::overflow);
  EXPECT_EQ(error(pair, {.G = {0, 1}, .O = {1, 1}}), Code::overflow);
  EXPECT_EQ(error("num_ranks 1\nrank 0 {\ncalc 1\n}\n", {.L_ps = UINT64_MAX}), Code::overflow);
  // Many that fit, one after the other.
  std::string many = "num_ranks 1\nrank 0 {\n";
  for (int one = 0; one < 20; ++one) many += text("calc ", uint64_t{1} << 60, "\n");
  EXPECT_EQ(error(many + "}\n", {.unit_ps = 1}), Code::overflow);
  EXPECT_EQ(finish_of("num_ranks 1\nrank 0 {\ncalc 4611686018427387904\n}\n", {.unit_ps = 1}), Times({time_ps_max}));
}

TEST(Model, AStallHasTheSentencesOfTheDialect) {
  const auto read = schedule::read_goal(
      "num_ranks 2\nrank 0 {\nr: recv 8b from 1\ns: send 8b to 1\ns requires r\n}\nrank 1 {\nrecv 8b from 0\nsend 9b "
      "to "
      "0 tag 3\n}\n");
  const auto ours = run(*read, {});
  ASSERT_FALSE(ours);
  EXPECT_EQ(ours.error().code, Code::stalled);
  EXPECT_EQ(ours.error().message, run_loggopsim(*read, {}).error().message);
  EXPECT_EQ(run(Schedule(2), {}).error().message, run_loggopsim(Schedule(2), {}).error().message);
}

// Rank 1 receives anything, and both ranks meet in a barrier with tag 1000, whose message comes first.
TEST(Model, ReceivesOfAnyTagLeaveTagsThatAreApart) {
  const auto read = schedule::read_goal(
      "num_ranks 2\nrank 0 {\na: send 1b to 1 tag 1000\nb: send 8b to 1 tag 3\nb requires a\n}\n"
      "rank 1 {\na: recv 8b from -1 tag -1\nb: recv 1b from 0 tag 1000\nb requires a\nc: calc 5\nc requires a\n}\n");
  const auto mixed_up = run(*read, {});
  ASSERT_FALSE(mixed_up);
  EXPECT_EQ(mixed_up.error().code, Code::stalled);
  EXPECT_FALSE(run_loggopsim(*read, {}));
  for (const TagsApart apart : {TagsApart{1000, 1000}, TagsApart{4, schedule::any - 1}}) {
    const auto outcome = run(*read, {.tags_apart = apart});
    ASSERT_TRUE(outcome) << outcome.error().message;
    // The second message: 2 o + L + 7 G + o, the first one, which waits, o more at its receive; 5 ns of work behind
    // both.
    EXPECT_GE(outcome->finish_ps[1], 3 * o + L + 7 * G);
    EXPECT_TRUE(run_loggopsim(*read, {.tags_apart = apart}));
  }
  const auto others = run(*read, {.tags_apart = {1001, 2000}});
  ASSERT_FALSE(others);
  EXPECT_EQ(others.error().message, mixed_up.error().message);
}

TEST(Model, RandomSchedulesAreAsTheNaiveEngineSays) {
  test::for_seeds(20'000, [](Random& random) {
    const Schedule schedule =
        test::random_schedule(random, random.between(1, 20), test::Sizes::usual, test::Words::all);
    compare_with_naive(schedule, random_model(random));
  });
}

// A ring of 300 ranks has 2 x 299 steps: 358,800 operations. A look at each 65,536 things that happen, which are these,
// and on their way messages.
TEST(Model, AWatchSeesOperationsBeginAndMayEndTheRun) {
  const auto made = make_pattern("ring_allreduce", 300, 8);
  const auto with = [&](bool dialect, const Watch& watch) {
    if (!dialect) {
      const auto outcome = run(*made, {}, nullptr, watch);
      return outcome ? Status() : Status(outcome.error());
    }
    const auto outcome = run_loggopsim(*made, {}, watch);
    return outcome ? Status() : Status(outcome.error());
  };
  for (const bool dialect : {false, true}) {
    std::vector<uint64_t> seen;
    EXPECT_TRUE(with(dialect, [&](uint64_t begun) {
      seen.push_back(begun);
      return true;
    }));
    EXPECT_GE(seen.size(), made->operations() / events_between_looks);
    EXPECT_TRUE(std::ranges::is_sorted(seen));
    EXPECT_LE(seen.back(), made->operations());
    EXPECT_GT(seen.back(), made->operations() / 5 * 4);
    int progress = 0;
    EXPECT_FALSE(with(dialect, [&](uint64_t) { return ++progress < 3; }));
    EXPECT_EQ(progress, 3);
  }
  const auto ended = run_loggopsim(*made, {}, [](uint64_t) { return false; });
  EXPECT_TRUE(ended.error().message.starts_with("the run was ended from outside when ")) << ended.error().message;
}

TEST(Model, LongQueuesAreAsTheNaiveEngineSays) {
  test::for_seeds(400, [](Random& random) {
    const Schedule schedule =
        test::random_schedule(random, random.between(50, 400), test::Sizes::usual, test::Words::all);
    compare_with_naive(schedule, random_model(random));
  });
}

}  // namespace
}  // namespace spinloom::goal
