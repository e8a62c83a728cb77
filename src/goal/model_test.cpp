// The algebra of the model by hand, and random schedules against the naive engine.
#include "goal/model.hpp"

#include <gtest/gtest.h>

#include "goal/critical_path.hpp"
#include "goal/engine.hpp"
#include "goal/naive_engine.hpp"
#include "goal/patterns.hpp"
#include "goal/test_support.hpp"
#include "schedule/goal.hpp"

namespace spinloom::goal {
namespace {

using schedule::Schedule;

constexpr uint64_t L = 2'500'000, o = 1'500'000, g = 1'000'000, G = 6000;  // ps

Outcome outcome_of(const std::string& goal, const Model& model = {}) {
  const auto read = schedule::read_goal(goal);
  EXPECT_TRUE(read) << read.error().message;
  auto outcome = run(*read, model);
  EXPECT_TRUE(outcome) << outcome.error().message;
  return outcome ? *outcome : Outcome();
}

std::vector<uint64_t> finish_of(const std::string& goal, const Model& model = {}) {
  return outcome_of(goal, model).finish_ps;
}

using Times = std::vector<uint64_t>;

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
  // What has been led on may lead on what else could have led it.
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

// Rank 0 does something to rank 1, which computes for 5 when one has arrived.
std::string one_sided(std::string_view what) {
  return text("num_ranks 2\nrank 0 {\n", what,
              " 1 tag 3\n}\nrank 1 {\na: arrived 1 tag 3\nc: calc 5\nc requires a\n}\n");
}

TEST(Model, APutNeedsNoCpuOfItsTarget) {
  // It has arrived at c + L + n G with c = o + n O, and has ended when its last byte has left, c + n G.
  for (const char* const what : {"put 1000b to", "atomic 1000b to"}) {
    const Outcome outcome = outcome_of(one_sided(what));
    EXPECT_EQ(outcome.finish_ps, Times({o + 999 * G, o + L + 999 * G + 5000}));
    EXPECT_EQ(outcome.overhead_ps, Times({o, 0}));
    const uint64_t c = o + 999 * 7000;
    EXPECT_EQ(finish_of(one_sided(what), {.O = {7000, 1}}), Times({c + 999 * G, c + L + 999 * G + 5000}));
  }
  // No size asks first.
  EXPECT_EQ(finish_of(one_sided("put 70000b to")), Times({o + 69999 * G, o + L + 69999 * G + 5000}));
  EXPECT_EQ(finish_of(one_sided("put 0b to")), Times({o, o + L + 5000}));
}

TEST(Model, AGetAsksAndItsDataComeBack) {
  // o + L + (n G + L): no CPU works for bytes. It has been done at its target when the last byte has left there.
  EXPECT_EQ(finish_of(one_sided("get 1000b from"), {.O = {7000, 1}}),
            Times({o + L + L + 999 * G, o + L + 999 * G + 5000}));
  EXPECT_EQ(outcome_of(one_sided("get 1000b from")).overhead_ps, Times({o, 0}));
}

TEST(Model, AFetchingAtomicGoesThereAndBack) {
  // c + 2 (L + n G); at the target it has been done when its operand is there.
  const uint64_t c = o + 7 * 7000;
  EXPECT_EQ(finish_of(one_sided("fetch 8b from"), {.O = {7000, 1}}),
            Times({c + 2 * (L + 7 * G), c + L + 7 * G + 5000}));
}

TEST(Model, OneSidedOperationsQueueInNics) {
  // k puts: the last leaves (k - 1) (g + n G) after the first, and has arrived L + n G later.
  const uint64_t slot = g + 9999 * G;
  const std::string goal =
      "num_ranks 2\nrank 0 {\nput 10000b to 1\nput 10000b to 1\nput 10000b to 1\n}\n"
      "rank 1 {\na: arrived 2\nb: arrived 3\nc: calc 1\nc requires a\n}\n";
  EXPECT_EQ(finish_of(goal), Times({o + 2 * slot + 9999 * G, o + 2 * slot + L + 9999 * G}));
  Record record;
  ASSERT_TRUE(run(*schedule::read_goal(goal), {}, &record));
  EXPECT_EQ(record.of(1, 0).end_ps, o + slot + L + 9999 * G);
  EXPECT_EQ(record.of(1, 2).begin_ps, o + slot + L + 9999 * G);
  // A get behind a put asks behind its bytes: o + slot + L + L + n G.
  EXPECT_EQ(finish_of("num_ranks 2\nrank 0 {\nput 10000b to 1\nget 1000b from 1\n}\nrank 1 {\n}\n")[0],
            o + slot + L + L + 999 * G);
}

TEST(Model, ACounterOnlyGrows) {
  // Who asks for what has arrived before goes on at once; nobody's share is taken by it. Tags count apart.
  EXPECT_EQ(finish_of("num_ranks 2\nrank 0 {\nput 1b to 1 tag 4\n}\nrank 1 {\nw: calc 10000\na: arrived 1 tag 4\n"
                      "b: arrived 1 tag 4\nc: arrived 0 tag 9\na requires w\nb requires a\nc requires b\n}\n")[1],
            10'000'000);
  const auto outcome = run(*schedule::read_goal("num_ranks 2\nrank 0 {\nput 1b to 1 tag 4\n}\nrank 1 {\n"
                                                "a: arrived 2 tag 4\nb: calc 3\nb requires a\n}\n"),
                           {});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(
      outcome.error().message,
      "the schedule stalls: operation 0 of rank 1 (arrival of 2 with tag 4) waits, but only 1 have come; operation "
      "1 of rank 1 (computation of 3) never begins: it waits for operation 0, which never ends; in all 1 receives "
      "and messages are without a partner and 1 operations never begin");
}

TEST(Model, ATriggeredOperationIsAPutBehindAnArrival) {
  // A ring of k ranks in which each puts on what has arrived: its CPU works for o each time.
  const uint64_t k = 5;
  std::string goal = text("num_ranks ", k, "\n");
  for (uint64_t rank = 0; rank < k; ++rank) {
    goal += text("rank ", rank, " {\na: arrived 1\np: put 100b to ", (rank + 1) % k, "\n");
    goal += rank == 0 ? "}\n" : "p requires a\n}\n";
  }
  EXPECT_EQ(finish_of(goal)[0], k * (o + L + 99 * G));
}

TEST(Model, LayoutsCostWhatIsGiven) {
  // A CPU packs, the other one unpacks: T = (c + s P) + L + n G + (c + s P). Without a price nothing, and of ends in one
  // block neither.
  Schedule schedule(2);
  schedule::Builder builder;
  const auto layout = schedule.number_of_layout(schedule::Layout{"every other", 250, 1000});
  using schedule::Kind;
  builder.add(schedule.number_of({.size = 1000, .kind = Kind::send}, {layout, schedule::contiguous}), 1);
  schedule.intern(0, builder.take());
  builder.add(schedule.number_of({.size = 1000, .kind = Kind::receive}, {layout, schedule::contiguous}), 0);
  schedule.intern(1, builder.take());
  const uint64_t P = 500;
  EXPECT_EQ(run(schedule, {})->finish_ps, Times({o, o + L + 999 * G + o}));
  EXPECT_EQ(run(schedule, {.layout = Rate(P, 1)})->finish_ps,
            Times({o + 1000 * P, o + 1000 * P + L + 999 * G + o + 1000 * P}));
  builder.add(schedule.number_of({.size = 1000, .kind = Kind::receive}), 0);
  schedule.intern(1, builder.take());
  EXPECT_EQ(run(schedule, {.layout = Rate(P, 1)})->finish_ps[1], o + 1000 * P + L + 999 * G + o);
  // One-sided: the initiator's CPU packs, nobody's CPU works at the target; the data of a get land as they are.
  builder.add(schedule.number_of({.size = 1000, .kind = Kind::put}, {layout, layout}), 1);
  schedule.intern(0, builder.take());
  schedule.intern(1, builder.take());
  const auto put = run(schedule, {.layout = Rate(P, 1)});
  EXPECT_EQ(put->finish_ps, Times({o + 1000 * P + 999 * G, 0}));
  EXPECT_EQ(put->overhead_ps, Times({o + 1000 * P, 0}));
  builder.add(schedule.number_of({.size = 1000, .kind = Kind::get}, {layout, layout}), 1);
  schedule.intern(0, builder.take());
  EXPECT_EQ(run(schedule, {.layout = Rate(P, 1)})->finish_ps, Times({o + 2 * L + 999 * G, 0}));
}

TEST(Model, TheDialectKnowsNothingOneSided) {
  const auto outcome = run_loggopsim(*schedule::read_goal(one_sided("put 8b to")), {});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(
      outcome.error().message,
      "operation 0 of rank 0 is a put of 8 B to 1 with tag 3, which LogGOPSim does not know; run it by our own model");
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
  const uint64_t together = run(*made, {.noise = Noise{100'000'000, 10'000'000, 1, true}})->makespan_ps;
  const uint64_t apart = run(*made, {.noise = Noise{100'000'000, 10'000'000, 1, false}})->makespan_ps;
  EXPECT_EQ(quiet, 8 * (2 * o + L + 7 * G));
  EXPECT_EQ(together, quiet + 10'000'000);
  EXPECT_GT(apart, together);
  EXPECT_EQ(run(*made, {.noise = Noise{5, 5, 1, false}}).error().code, Code::invalid);
}

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
  EXPECT_EQ(finish_of("num_ranks 1\nrank 0 {\ncalc 4611686018427387904\n}\n", {.unit_ps = 1}), Times({time_ps_most}));
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

network::Config random_network(Random& random, uint32_t ranks) {
  network::Config config;
  if (random.chance(1, 3)) {
    config.topology = network::FatTree{.radix = 4, .oversubscription = random.chance(1, 2) ? 1U : 2U};
  } else if (random.chance(1, 2)) {
    config.topology = network::Torus{.sizes = {3, (ranks + 2) / 3}};
  } else {
    config.topology = network::Dragonfly{.hosts = 1, .routers = 2, .globals = 1, .groups = 3};
  }
  config.hop_ps = random.chance(1, 2) ? 0 : random.below(3000);
  const uint64_t packets[] = {0, 1, 4, 4096};
  config.packet_bytes = packets[random.below(4)];
  if (random.chance(1, 3)) config.shuffle_seed = random.next();
  if (random.chance(1, 2)) config.routing = network::Routing::adaptive;
  return config;
}

Model random_model(Random& random) {
  Model model;
  const uint64_t times[] = {0, 1, 5, 1000, 40'000, random.below(3'000'000)};
  for (uint64_t* const one : {&model.L_ps, &model.o_ps, &model.g_ps}) *one = times[random.below(6)];
  model.G = {random.between(0, 3) * random.between(0, 4000), random.between(1, 3)};
  model.O = {random.between(0, 1) * random.between(0, 4000), random.between(1, 3)};
  const uint64_t sizes[] = {0, 1, 4, 65535, UINT64_MAX, 10};
  model.S_bytes = sizes[random.below(6)];
  model.unit_ps = random.chance(1, 2) ? 1000 : random.below(3);
  if (random.chance(1, 2)) model.layout = Rate(random.between(0, 4000), random.between(1, 3));
  if (random.chance(1, 4)) {
    const uint64_t period_ps = 1 + random.below(5'000'000);
    model.noise = Noise{period_ps, period_ps / (1 + random.below(50)), random.next(), random.chance(1, 3)};
    if (model.noise->length_ps == period_ps) --model.noise->length_ps;
    if (period_ps < 100'000 || model.noise->length_ps > period_ps / 2) model.noise.reset();
  }
  return model;
}

void compare_with_naive(const Schedule& schedule, const Model& model) {
  SCOPED_TRACE(text("L = ", model.L_ps, ", o = ", model.o_ps, ", g = ", model.g_ps, ", G = ", model.G.ps_numerator(),
                    "/", model.G.denominator(), ", O = ", model.O.ps_numerator(), "/", model.O.denominator(),
                    ", S = ", model.S_bytes, ", unit = ", model.unit_ps));
  if (model.network.has_value()) {
    SCOPED_TRACE(text("form ", model.network->topology.index(), ", hop = ", model.network->hop_ps, ", packets of ",
                      model.network->packet_bytes));
  }
  test::NaiveEngine naive(schedule, model);
  naive.run();
  Engine engine(schedule, model);
  ASSERT_TRUE(engine.run());
  EXPECT_EQ(engine.has_stalled(), naive.left + naive.unmatched > 0);
  const Outcome outcome = engine.outcome();
  EXPECT_EQ(outcome.finish_ps, naive.outcome.finish_ps);
  EXPECT_EQ(outcome.compute_ps, naive.outcome.compute_ps);
  EXPECT_EQ(outcome.overhead_ps, naive.outcome.overhead_ps);
  EXPECT_EQ(outcome.makespan_ps, naive.outcome.makespan_ps);
  EXPECT_EQ(outcome.events, naive.outcome.events);
  if (naive.left + naive.unmatched == 0) return;
  const auto failed = run(schedule, model);
  ASSERT_FALSE(failed);
  const std::string end = text("in all ", naive.unmatched, " receives and messages are without a partner and ",
                               naive.left, " operations never begin");
  EXPECT_TRUE(failed.error().message.ends_with(end)) << failed.error().message << "\n" << end;
}

// Steps without a gap from 0 to the end, of which a CPU does no two at once.
void check_path(const Schedule& schedule, const Model& model) {
  Record record;
  const auto outcome = run(schedule, model, &record);
  if (!outcome) return;
  const std::vector<Step> steps = critical_path(schedule, model, record);
  uint64_t now = 0;
  uint64_t latency = 0;
  for (const Step& step : steps) {
    EXPECT_EQ(step.begin_ps, now);
    EXPECT_GT(step.end_ps, step.begin_ps);
    now = step.end_ps;
    if (step.kind == StepKind::latency) latency += step.end_ps - step.begin_ps;
    const bool computes =
        schedule.shape(schedule.program(step.rank).operations[step.operation]).kind == schedule::Kind::compute;
    EXPECT_EQ(computes, step.kind == StepKind::compute);
  }
  EXPECT_EQ(now, outcome->makespan_ps);
  EXPECT_EQ(latency % std::max<uint64_t>(model.L_ps, 1), 0);
}

TEST(Model, CriticalPathsHaveNoGaps) {
  test::for_seeds(5000, [](Random& random) {
    const Schedule schedule =
        test::random_schedule(random, random.between(1, 30), test::Sizes::usual, test::Words::all);
    Model model = random_model(random);
    check_path(schedule, model);
    if (random.chance(1, 2)) return;
    model.network = random_network(random, schedule.ranks());
    model.network->packet_bytes = 4096;
    check_path(schedule, model);
  });
}

TEST(Model, TheCriticalPathOfADisseminationIsItsClosedForm) {
  const auto made = make_pattern("dissemination", 64, 100);
  Record record;
  ASSERT_TRUE(run(*made, {}, &record));
  std::map<StepKind, uint64_t> sums;
  for (const Step& step : critical_path(*made, {}, record)) sums[step.kind] += step.end_ps - step.begin_ps;
  EXPECT_EQ(sums, (std::map<StepKind, uint64_t>{{StepKind::send, 6 * o},
                                                {StepKind::receive, 6 * o},
                                                {StepKind::latency, 6 * L},
                                                {StepKind::bytes, 6 * 99 * G}}));
}

TEST(Model, TheCriticalPathOfARendezvousGoesThereAndBackAndThere) {
  const auto made = schedule::read_goal(
      "num_ranks 2\nrank 0 {\nsend 70000b to 1\n}\nrank 1 {\nc: calc 10\nr: recv 70000b from 0\nr requires c\n}\n");
  Record record;
  ASSERT_TRUE(run(*made, {}, &record));
  std::vector<std::pair<StepKind, uint64_t>> steps;
  for (const Step& step : critical_path(*made, {}, record)) steps.emplace_back(step.kind, step.end_ps - step.begin_ps);
  EXPECT_EQ(steps, (std::vector<std::pair<StepKind, uint64_t>>{{StepKind::send, o},
                                                               {StepKind::latency, L},
                                                               {StepKind::latency, L},
                                                               {StepKind::latency, L},
                                                               {StepKind::bytes, 69999 * G},
                                                               {StepKind::receive, o}}));
}

TEST(Model, RandomSchedulesAreAsTheNaiveEngineSays) {
  test::for_seeds(20'000, [](Random& random) {
    const Schedule schedule =
        test::random_schedule(random, random.between(1, 20), test::Sizes::usual, test::Words::all);
    compare_with_naive(schedule, random_model(random));
  });
}

TEST(Model, PacketsInNetworksAreAsTheNaiveEngineSays) {
  test::for_seeds(5000, [](Random& random) {
    const Schedule schedule =
        test::random_schedule(random, random.between(1, 20), test::Sizes::brief, test::Words::all);
    Model model = random_model(random);
    model.network = random_network(random, schedule.ranks());
    compare_with_naive(schedule, model);
  });
}

TEST(Model, ASwitchThatDoesNotCutMessagesIsTheCrossbar) {
  test::for_seeds(2000, [](Random& random) {
    const Schedule schedule =
        test::random_schedule(random, random.between(1, 30), test::Sizes::usual, test::Words::all);
    Model model = random_model(random);
    Engine crossbar(schedule, model);
    model.network = network::Config{.topology = network::FatTree{.radix = 16}, .packet_bytes = 0};
    Engine tree(schedule, model);
    ASSERT_TRUE(crossbar.run());
    ASSERT_TRUE(tree.run());
    EXPECT_EQ(crossbar.outcome().finish_ps, tree.outcome().finish_ps);
  });
}

TEST(Model, OneMessageThroughANetwork) {
  // T = o + L + h hop + (s - 1) G + o, cut into packets or not.
  const auto made = schedule::read_goal(
      "num_ranks 9\nrank 0 {\nsend 10000b to 8\n}\nrank 1 {\n}\nrank 2 {\n}\nrank 3 "
      "{\n}\nrank 4 {\n}\nrank 5 {\n}\nrank 6 {\n}\nrank 7 {\n}\nrank 8 {\nrecv "
      "10000b from 0\n}\n");
  ASSERT_TRUE(made) << made.error().message;
  for (const uint64_t packet : {0, 1, 100, 4096, 10000}) {
    for (const Rate rate : {Rate(6000, 1), Rate(20, 3), Rate(0, 1)}) {
      const uint64_t bytes_ps = (9999 * static_cast<uint64_t>(rate.ps_numerator()) + rate.denominator() - 1) /
                                static_cast<uint64_t>(rate.denominator());
      Model model{.G = rate};
      model.network = network::Config{.topology = network::FatTree{.radix = 4}, .hop_ps = 700, .packet_bytes = packet};
      EXPECT_EQ(run(*made, model)->makespan_ps, o + L + 4 * 700 + bytes_ps + o) << packet;
      model.network->topology = network::Torus{.sizes = {3, 3}};
      EXPECT_EQ(run(*made, model)->makespan_ps, o + L + 2 * 700 + bytes_ps + o) << packet;
    }
  }
}

TEST(Model, FlowsShareALinkPacketByPacket) {
  // Ranks 0 and 1 send s bytes to ranks 2 and 3 over one link, at once. Its packets alternate: both end when 2 s bytes
  // have crossed, but for a packet. Uncut, one has the link to itself first.
  const auto made = schedule::read_goal(
      "num_ranks 4\nrank 0 {\nsend 40000b to 2\n}\nrank 1 {\nsend 40000b to 3\n}\n"
      "rank 2 {\nrecv 40000b from 0\n}\nrank 3 {\nrecv 40000b from 1\n}\n");
  ASSERT_TRUE(made);
  Model model;
  model.network = network::Config{
      .topology = network::FatTree{.radix = 4, .levels = 2, .oversubscription = 2}, .hop_ps = 0, .packet_bytes = 1000};
  const uint64_t last = o + L + 80'000 * G - G + o;
  EXPECT_EQ(run(*made, model)->finish_ps, Times({o, o, last - 1000 * G, last}));
  model.network->packet_bytes = 0;
  EXPECT_EQ(run(*made, model)->finish_ps, Times({o, o, last - 40'000 * G, last}));
  // Without oversubscription each has a link of its own.
  model.network->topology = network::FatTree{.radix = 4, .levels = 2};
  EXPECT_EQ(run(*made, model)->finish_ps, Times({o, o, last - 40'000 * G, last - 40'000 * G}));
}

TEST(Model, AdaptivePathsDoNotChangeTheOrderOfMessages) {
  // Two hosts at each of three switches, which two others connect. A message of rank 0 to rank 4 queues behind 200,000
  // bytes from rank 2 to rank 5. The next one leaves g later, when rank 1 keeps that way up busy, and is there first.
  const auto made = schedule::read_goal(R"(num_ranks 6
rank 0 {
w: calc 1
a: send 30000b to 4
a requires w
b: send 1b to 4
b requires a
}
rank 1 {
w: calc 200000
s: send 100000b to 3
s requires w
}
rank 2 {
send 200000b to 5
}
rank 3 {
recv 100000b from 1
}
rank 4 {
a: recv 30000b from 0
b: recv 1b from 0
c: calc 1000
c requires a
}
rank 5 {
recv 200000b from 2
}
)");
  ASSERT_TRUE(made) << made.error().message;
  Model model{.g_ps = 50'000'000, .S_bytes = UINT64_MAX};
  model.network = network::Config{.topology = network::FatTree{.radix = 4, .levels = 2},
                                  .routing = network::Routing::adaptive,
                                  .hop_ps = 0,
                                  .packet_bytes = 0};
  const auto outcome = run(*made, model);
  ASSERT_TRUE(outcome) << outcome.error().message;
  // The CPU works for the first, then for the second, and then computes.
  EXPECT_EQ(outcome->finish_ps[4], o + L + 200'000 * G + 29'999 * G + o + o + 1'000'000);
}

TEST(Model, ASinkBehindANetworkTakesItsBytesInTheSameTime) {
  // k senders of s bytes: the last byte is in (k - 1) (s G + g - G) + (s - 1) G after the first byte.
  const auto made = make_pattern("linear_gather", 9, 10000);
  Model model;
  model.network = network::Config{.topology = network::FatTree{.radix = 32}};
  EXPECT_EQ(run(*made, model)->makespan_ps, o + L + 7 * (9999 * G + g) + 9999 * G + o);
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
    int looks = 0;
    EXPECT_FALSE(with(dialect, [&](uint64_t) { return ++looks < 3; }));
    EXPECT_EQ(looks, 3);
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
