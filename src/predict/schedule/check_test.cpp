// The check of schedules: cycles, peers, counters, layouts, and messages that cannot meet.
#include "predict/schedule/check.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "predict/schedule/testing/random_schedule.hpp"

namespace spinloom::schedule {
namespace {

std::string trouble_of(const Schedule& schedule) {
  const Status found = check(schedule);
  return found ? "" : found.error().message;
}

std::string trouble(std::string_view goal) { return trouble_of(test::read(goal)); }

// Ranks 0, 1, ... with these statements.
std::string ranks(std::initializer_list<std::string_view> statements) {
  std::string goal = text("num_ranks ", statements.size(), "\n");
  size_t rank = 0;
  for (const std::string_view one : statements) goal += text("rank ", rank++, " {\n", one, "}\n");
  return goal;
}

TEST(Check, AllExamplesButOneAreRight) {
  for (const char* const name :
       {"one_eager", "chain", "ping_pong",    "gap_train",     "rendezvous",  "s_boundary", "unexpected", "any_source",
        "any_tag",   "fifo",  "tags_swapped", "incast_posted", "incast_late", "fan_out",    "calc_dag",   "irequires",
        "cpus",      "nics",  "size_zero",    "binomial_8",    "dissem_8",    "ring_5",     "halo_3x3"}) {
    EXPECT_EQ(trouble(test::file(text("examples/", name, ".goal"))), "") << name;
  }
  EXPECT_EQ(trouble(test::file("examples/deadlock.goal")),
            "rank 0 sends rank 1 1 message with tag 1, but rank 1 has 0 receives that can take them");
}

TEST(Check, NamesACycle) {
  EXPECT_EQ(trouble(ranks({"", "calc 1\na: calc 2\na requires a\n"})),
            "rank 1: operation 1 (computation of 2) waits for itself");
  EXPECT_EQ(trouble(ranks({"", "a: calc 1\nb: send 8b to 0\nc: calc 3\na requires b\nb irequires a\nc requires b\n"})),
            "rank 1: 2 operations wait for each other: 0 (computation of 1) -> 1 (send of 8 B to 0) -> 0");
}

TEST(Check, NamesTheShortestCycleThroughAnOperation) {
  EXPECT_EQ(
      trouble(ranks({"a: calc 1\nb: calc 2\nc: calc 3\nd: calc 4\nb requires a\nc requires b\nd requires c\na "
                     "requires d\na requires c\n"})),
      "rank 0: 3 operations wait for each other: 0 (computation of 1) -> 1 (computation of 2) -> 2 (computation of 3) "
      "-> 0");
}

TEST(Check, WhatIsLedOnByAnotherIsNoCycle) {
  // b waits for a or c, c for b: a leads it on.
  EXPECT_EQ(trouble(ranks({"a: calc 1\nb: calc 2\nc: calc 3\nb anyof a\nb anyof c\nc requires b\n"})), "");
  // Nobody does; or only one of its waits is met.
  EXPECT_EQ(trouble(ranks({"a: calc 1\nb: calc 2\nc: calc 3\nb anyof b\nb anyof c\nc requires b\n"})),
            "rank 0: operation 1 (computation of 2) waits for itself");
  EXPECT_EQ(trouble(ranks({"a: calc 1\nb: calc 2\nc: calc 3\nb anyof a\nb anyof b\nb requires c\nc requires b\n"})),
            "rank 0: 2 operations wait for each other: 1 (computation of 2) -> 2 (computation of 3) -> 1");
}

TEST(Check, CutsTheSentenceOfALongCycle) {
  std::string statements;
  for (int i = 0; i < 100; ++i) statements += text("l", i, ": calc ", i, "\n");
  for (int i = 0; i < 100; ++i) statements += text("l", i, " requires l", (i + 99) % 100, "\n");
  const std::string found = trouble(ranks({statements}));
  EXPECT_EQ(found.substr(0, 72), "rank 0: 100 operations wait for each other: 0 (computation of 0) -> 1 (c");
  EXPECT_TRUE(found.ends_with("-> 7 (computation of 7) -> ... -> 0")) << found;
}

TEST(Check, ALongChainIsNoCycle) {
  Schedule schedule(1);
  Builder builder;
  const uint32_t shape = schedule.intern_shape({});
  for (uint32_t i = 0; i < 1'000'000; ++i) builder.add(shape, 0);
  for (uint32_t i = 1; i < 1'000'000; ++i) builder.require(i, i - 1, Awaits::end);
  schedule.intern(0, builder.take());
  EXPECT_EQ(trouble_of(schedule), "");
}

TEST(Check, APeerMustBeARank) {
  Schedule schedule(2);
  Builder builder;
  Shape shape;
  shape.kind = Kind::receive;
  builder.add(schedule.intern_shape(shape), 2);
  schedule.intern(1, builder.take());
  EXPECT_EQ(trouble_of(schedule),
            "rank 1: operation 0 (receive of 0 B from 2): there is no rank 2: the schedule has 2");
  shape.kind = Kind::send;
  builder.add(schedule.intern_shape(shape), any);
  schedule.intern(1, builder.take());
  EXPECT_EQ(trouble_of(schedule), "rank 1: operation 0 (send of 0 B to any rank): a send needs a receiver");
}

TEST(Check, ACounterMustReachWhatIsWaitedFor) {
  const std::string puts = "put 8b to 1 tag 4\nget 8b from 1 tag 4\natomic 8b to 1 tag 4\nfetch 8b from 1 tag 5\n";
  EXPECT_EQ(trouble(ranks({puts, "arrived 3 tag 4\narrived 1 tag 5\narrived 3 tag 4\n"})), "");
  EXPECT_EQ(
      trouble(ranks({puts, "arrived 1 tag 4\narrived 4 tag 4\n"})),
      "rank 1: operation 1 (arrival of 4 with tag 4) waits for 4, but 3 one-sided operations have rank 1 and tag 4 "
      "as their target");
  EXPECT_EQ(
      trouble(ranks({puts, "arrived 1 tag 6\n"})),
      "rank 1: operation 0 (arrival of 1 with tag 6) waits for 1, but 0 one-sided operations have rank 1 and tag 6 "
      "as their target");
  Schedule schedule(1);
  Builder builder;
  builder.add(schedule.intern_shape({.size = 1, .tag = any, .kind = Kind::put}), 0);
  schedule.intern(0, builder.take());
  EXPECT_EQ(trouble_of(schedule),
            "rank 0: operation 0 (put of 1 B to 0 with any tag): a counter has a tag of its own, not any");
  builder.add(schedule.intern_shape({.size = 1, .kind = Kind::get}), any);
  schedule.intern(0, builder.take());
  EXPECT_EQ(trouble_of(schedule), "rank 0: operation 0 (get of 1 B from any rank): a get needs a target");
}

TEST(Check, ALayoutHoldsTheBytesOfItsTransfer) {
  const auto with = [](Shape shape, TransferLayouts layouts) {
    Schedule schedule(1);
    (void)schedule.intern_layout(Layout{"blob", 2, 8});
    Builder builder;
    builder.add(schedule.intern_shape(shape, layouts), 0);
    schedule.intern(0, builder.take());
    return trouble_of(schedule);
  };
  const Shape put{.size = 8, .kind = Kind::put};
  EXPECT_EQ(with(put, {0, 0}), "");
  EXPECT_EQ(with(put, {0, contiguous}), "");
  EXPECT_EQ(with({.size = 9, .kind = Kind::put}, {contiguous, 0}),
            "rank 0: operation 0 (put of 9 B to 0) has layout 0, which holds 8 B");
  EXPECT_EQ(with(put, {contiguous, 1}), "rank 0: operation 0 (put of 8 B to 0) has layout 1, but there are 1");
  EXPECT_EQ(
      with({.size = 8, .kind = Kind::send}, {0, 0}),
      "rank 0: operation 0 (send of 8 B to 0) has a layout at its peer: only one-sided operations have one there");
  EXPECT_EQ(with({.size = 8}, {0, contiguous}),
            "rank 0: operation 0 (computation of 8) has a layout, but moves no bytes");
}

TEST(Check, SendsAndReceivesMeetByTagAndNumber) {
  EXPECT_EQ(
      trouble(ranks({"send 1b to 1 tag 7\nsend 1b to 1 tag 7\n", "recv 9b from 0 tag 7\nrecv 9b from 0 tag 7\n"})), "");
  EXPECT_EQ(trouble(ranks({"send 1b to 1 tag 7\n", "recv 1b from 0 tag 7\nrecv 1b from 0 tag 7\n"})),
            "rank 1 has 2 receives from rank 0 with tag 7, but rank 0 sends it 1 message that they can take");
  EXPECT_EQ(trouble(ranks({"send 1b to 1 tag 7\nsend 1b to 1 tag 7\n", "recv 1b from 0 tag 7\n"})),
            "rank 0 sends rank 1 2 messages with tag 7, but rank 1 has 1 receive that can take them");
  EXPECT_EQ(trouble(ranks({"send 1b to 1\n", ""})),
            "rank 0 sends rank 1 1 message with tag 0, but rank 1 has 0 receives that can take them");
}

TEST(Check, AReceiveOfAnyTakesWhatIsLeft) {
  const std::string sends = "send 1b to 1 tag 7\nsend 1b to 1 tag 8\n";
  EXPECT_EQ(trouble(ranks({sends, "recv 1b from 0 tag -1\nrecv 1b from 0 tag 7\n"})), "");
  EXPECT_EQ(trouble(ranks({sends, "recv 1b from -1 tag 8\nrecv 1b from -1 tag -1\n"})), "");
  EXPECT_EQ(
      trouble(ranks({"send 1b to 1 tag -1\nsend 1b to 1 tag 8\n", "recv 1b from 0 tag 8\nrecv 1b from -1 tag 5\n"})),
      "");
  EXPECT_EQ(trouble(ranks({sends, "recv 1b from -1 tag -1\n"})),
            "rank 0 sends rank 1 2 messages, but rank 1 has 1 receive that can take them");
  EXPECT_EQ(trouble(ranks({sends, "recv 1b from 0 tag 7\nrecv 1b from 0 tag -1\nrecv 1b from 0 tag -1\n"})),
            "rank 1 has 3 receives from rank 0, but rank 0 sends it 2 messages");
  EXPECT_EQ(trouble(ranks({sends, "recv 1b from -1 tag 8\nrecv 1b from -1 tag 8\n"})),
            "rank 0 sends rank 1 1 message with tag 7, but rank 1 has 0 receives that can take them");
  EXPECT_EQ(trouble(ranks({sends, "recv 1b from -1 tag 8\nrecv 1b from -1 tag 9\nrecv 1b from -1 tag -1\n"})),
            "rank 1 has 1 receive with tag 9, but 0 messages that they can take are sent to it");
  EXPECT_EQ(trouble(ranks({sends, "recv 1b from -1 tag -1\nrecv 1b from -1 tag -1\nrecv 1b from -1 tag -1\n"})),
            "rank 1 has 3 receives, but 2 messages are sent to it");
}

// Compares what the check reports with all ways to match a few messages.
TEST(Check, ReportsOnlyWhatCannotMeet) {
  int met = 0;
  int reported = 0;
  int missed = 0;
  test::for_seeds(3000, [&](Random& random) {
    struct One {
      uint32_t source;
      uint32_t tag;
    };
    const auto some = [&](uint64_t number, bool any_source) {
      std::vector<One> made;
      for (uint64_t i = 0; i < number; ++i) {
        made.push_back({static_cast<uint32_t>(any_source && random.chance(1, 3) ? any : random.below(2)),
                        static_cast<uint32_t>(random.chance(1, 4) ? any : random.below(2))});
      }
      return made;
    };
    const uint64_t number = random.below(5) + 1;
    const std::vector<One> sends = some(number, false);
    const std::vector<One> receives = some(random.chance(1, 8) ? random.below(5) : number, true);
    Schedule schedule(3);
    Builder builder;
    Shape shape;
    for (uint32_t rank = 0; rank < 3; ++rank) {
      for (const One& one : rank == 2 ? receives : sends) {
        if (rank != 2 && one.source != rank) continue;
        shape.kind = rank == 2 ? Kind::receive : Kind::send;
        shape.tag = one.tag;
        builder.add(schedule.intern_shape(shape), rank == 2 ? one.source : 2);
      }
      schedule.intern(rank, builder.take());
    }
    const std::function<bool(size_t, unsigned)> can_meet = [&](size_t send, unsigned taken) {
      if (send == sends.size()) return true;
      for (size_t i = 0; i < receives.size(); ++i) {
        if ((taken >> i & 1) != 0) continue;
        const bool source = receives[i].source == any || receives[i].source == sends[send].source;
        const bool tag = receives[i].tag == any || sends[send].tag == any || receives[i].tag == sends[send].tag;
        if (source && tag && can_meet(send + 1, taken | 1U << i)) return true;
      }
      return false;
    };
    const bool meets = sends.size() == receives.size() && can_meet(0, 0);
    const std::string said = trouble_of(schedule);
    EXPECT_EQ(meets ? said : "", "");
    ++(meets ? met : said.empty() ? missed : reported);
  });
  if (std::getenv("SPINLOOM_TEST_SEED") != nullptr) return;
  EXPECT_GT(met, 300);
  EXPECT_GT(reported, 300);
  EXPECT_LT(missed, reported / 5);  // several rules together can forbid what each allows
}

TEST(Check, ManyRanksThatShareAProgramAreChecked) { EXPECT_EQ(trouble_of(test::dissemination(20000)), ""); }

TEST(Check, LooksAtReceiversInPasses) {
  // Every receiver has receives from any rank, which are no mirror of what is sent; the last one lacks a message.
  constexpr uint32_t count = 3000;
  Schedule schedule(count);
  Builder builder;
  Shape send;
  send.kind = Kind::send;
  Shape receive;
  receive.kind = Kind::receive;
  for (uint32_t rank = 0; rank < count; ++rank) {
    for (uint32_t step = 1; step <= 800; ++step) {
      builder.add(schedule.intern_shape(send), (rank + step) % count);
      builder.add(schedule.intern_shape(receive), any);
    }
    if (rank == count - 1) builder.add(schedule.intern_shape(receive), any);
    schedule.intern(rank, builder.take());
  }
  EXPECT_EQ(trouble_of(schedule),
            "rank 2999 has 801 receives with tag 0, but 800 messages that they can take are sent to it");
}

TEST(Count, TellsOneSidedOperationsApart) {
  const Count found = count(test::read(
      ranks({"put 1b to 1\nget 2b from 1\natomic 4b to 1\nfetch 8b from 1 nic 2\n", "arrived 4\narrived 2\n"})));
  EXPECT_EQ(found.puts, 1U);
  EXPECT_EQ(found.gets, 1U);
  EXPECT_EQ(found.atomics, 2U);
  EXPECT_EQ(found.arrivals, 2U);
  EXPECT_EQ(found.one_sided_bytes, 15U);
  EXPECT_EQ(found.sent_bytes, 0U);
  EXPECT_EQ(found.nics, 2U);
  EXPECT_EQ(found.nic_largest, 2U);
}

TEST(Count, SaysWhatAScheduleHolds) {
  const Schedule schedule = test::read(
      ranks({"a: send 10b to 1 cpu 3\nb: calc 5\nb requires a\nb irequires a\n", "recv 10b from 0 nic 2\n", ""}));
  const Count found = count(schedule);
  EXPECT_EQ(found.sends, 1U);
  EXPECT_EQ(found.receives, 1U);
  EXPECT_EQ(found.computations, 1U);
  EXPECT_EQ(found.edges, 2U);
  EXPECT_EQ(found.sent_bytes, 10U);
  EXPECT_EQ(found.cpus, 2U);  // 0 and 3
  EXPECT_EQ(found.cpu_largest, 3U);
  EXPECT_EQ(found.nics, 2U);
  EXPECT_EQ(found.nic_largest, 2U);
  const Count shared = count(test::dissemination(1024));
  EXPECT_EQ(shared.sends, 10240U);
  EXPECT_EQ(shared.sent_bytes, 81920U);
  EXPECT_EQ(count(Schedule(4)).cpus, 0U);
}

}  // namespace
}  // namespace spinloom::schedule
