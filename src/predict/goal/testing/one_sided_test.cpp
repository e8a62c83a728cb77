// One-sided operations and layouts under our own model, by hand.
#include <gtest/gtest.h>

#include "predict/goal/loggopsim/loggopsim.hpp"
#include "predict/goal/testing/layouts.hpp"
#include "predict/goal/testing/model.hpp"

namespace spinloom::goal {
namespace {

using namespace test;

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
  // An `arrived` whose number has already come goes on at once, and takes nothing from the counter. Tags count apart.
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
  // A CPU packs, the other one unpacks: T = (c + s P) + L + n G + (c + s P). Without a price nothing, and of ends in
  // one block neither.
  Schedule schedule = test::layouts_at_both_ends();
  const uint64_t P = 500;
  EXPECT_EQ(run(schedule, {})->finish_ps, Times({o, o + L + 999 * G + o}));
  EXPECT_EQ(run(schedule, {.layout = Rate(P, 1)})->finish_ps,
            Times({o + 1000 * P, o + 1000 * P + L + 999 * G + o + 1000 * P}));
  using schedule::Kind;
  const uint32_t layout = 0;  // the only one
  schedule::Builder builder;
  builder.add(schedule.intern_shape({.size = 1000, .kind = Kind::receive}), 0);
  schedule.intern(1, builder.take());
  EXPECT_EQ(run(schedule, {.layout = Rate(P, 1)})->finish_ps[1], o + 1000 * P + L + 999 * G + o);
  // One-sided: the initiator's CPU packs, nobody's CPU works at the target; the data of a get land as they are.
  builder.add(schedule.intern_shape({.size = 1000, .kind = Kind::put}, {layout, layout}), 1);
  schedule.intern(0, builder.take());
  schedule.intern(1, builder.take());
  const auto put = run(schedule, {.layout = Rate(P, 1)});
  EXPECT_EQ(put->finish_ps, Times({o + 1000 * P + 999 * G, 0}));
  EXPECT_EQ(put->overhead_ps, Times({o + 1000 * P, 0}));
  builder.add(schedule.intern_shape({.size = 1000, .kind = Kind::get}, {layout, layout}), 1);
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

}  // namespace
}  // namespace spinloom::goal
