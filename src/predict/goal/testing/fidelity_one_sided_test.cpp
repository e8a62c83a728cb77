// One-sided operations on NICs and nodes, by hand, and what the NIC does by itself.
#include <gtest/gtest.h>

#include "predict/goal/nics/fidelity.hpp"
#include "predict/goal/nics/host.hpp"
#include "predict/goal/nics/light_nics.hpp"
#include "predict/goal/testing/fidelity.hpp"
#include "predict/goal/testing/random_schedules.hpp"

namespace spinloom::goal {
namespace {

using namespace test;
using schedule::Schedule;

TEST_P(EachFidelity, APutIsCountedWhereItLands) {
  // The target: o + command + read + wire + landed(s) + counter; no CPU works there. The put has ended when its last
  // byte has left: o + command + read + line(s) + event.
  const int64_t s = 1000;
  const int64_t leaves = o + stages.command() + stages.read();
  const int64_t there = leaves + stages.wire() + stages.landed(s) + stages.counter();
  EXPECT_EQ(finish_of(one_sided("put 1000b to")),
            std::vector<uint64_t>({static_cast<uint64_t>(leaves + stages.line(s) + stages.event()),
                                   static_cast<uint64_t>(there + 5000)}));
}

TEST_P(EachFidelity, AGetIsCountedWhenItsBytesHaveLeft) {
  // The request has no bytes: left = o + command + wire + match + read; the target counts when the last byte has left:
  // left + line(s) + counter. The initiator has ended at left + wire + landed(s) + event.
  const int64_t s = 1000;
  const int64_t left = o + stages.command() + stages.wire() + profile.match.header.ps + stages.read();
  const int64_t there = left + stages.wire() + stages.landed(s) + stages.event();
  EXPECT_EQ(finish_of(one_sided("get 1000b from")),
            std::vector<uint64_t>({static_cast<uint64_t>(there),
                                   static_cast<uint64_t>(left + stages.line(s) + stages.counter() + 5000)}));
}

TEST_P(EachFidelity, AnAtomicReadsItsTargetOverPcie) {
  // here(s) = what a packet needs to be at its NIC; then a read of s bytes and a write. A fetching one then answers
  // from the NIC and counts when its answer has left.
  const int64_t s = 8;
  const int64_t here =
      o + stages.command() + stages.read() + stages.wire() + std::max(profile.match.header.ps, stages.line(s));
  const int64_t changed = here + stages.read() + stages.to_host(s) + stages.to_host(s);
  EXPECT_EQ(finish_of(one_sided("atomic 8b to"))[1], static_cast<uint64_t>(changed + stages.counter() + 5000));
  const auto fetched = finish_of(one_sided("fetch 8b from"));
  EXPECT_EQ(fetched[1], static_cast<uint64_t>(changed + stages.line(s) + stages.counter() + 5000));
  EXPECT_EQ(fetched[0], static_cast<uint64_t>(changed + stages.wire() + stages.answer_landed(s) + stages.event()));
}

TEST_P(EachFidelity, LongAtomicsAreSeveral) {
  // The last part counts, so that one has arrived when all bytes have; their values are checked at `full`.
  for (const char* const what : {"atomic 100000b to", "fetch 100000b from"}) {
    EXPECT_GT(finish_of(one_sided(what))[1], finish_of(one_sided("put 100000b to"))[1]);
  }
}

TEST_P(EachFidelity, ANicPutsOnWhatHasArrivedIfThatNeedsNoCpu) {
  // A chain of k ranks, each of which puts when one has arrived, while its CPU computes. With o = 0 the NIC does it:
  // T = command + k (read + wire + landed(s) + counting) + counter, with what a count takes at the NIC 0.
  // With a CPU every rank but the first one would wait for the computation.
  const int64_t s = 100;
  const int k = 5;
  std::string goal = text("num_ranks ", k + 1, "\nrank 0 {\nput 100b to 1\n}\n");
  for (int rank = 1; rank < k; ++rank) {
    goal += text("rank ", rank, " {\nw: calc 1000000\na: arrived 1\np: put 100b to ", rank + 1, "\np requires a\n}\n");
  }
  goal += text("rank ", k, " {\na: arrived 1\n}\n");
  const auto finish = finish_of(goal, {.o_ps = 0});
  const int64_t one = stages.read() + stages.wire() + stages.landed(s);
  EXPECT_EQ(finish[k],
            static_cast<uint64_t>(stages.command() + k * one + stages.counter() + (k - 1) * stages.to_host(16)));
  EXPECT_GT(finish_of(goal, {.o_ps = 1})[k], 1'000'000'000);
}

TEST_P(EachFidelity, ATriggeredOperationWaitsForAllOrForTheFirst) {
  // Rank 2 puts when something has come from ranks 0 and 1; rank 1 is late by 1 ms.
  const auto goal = [](const char* join) {
    return text("num_ranks 4\nrank 0 {\nput 8b to 2 tag 1\n}\nrank 1 {\nc: calc 1000000\np: put 8b to 2 tag 2\n",
                "p requires c\n}\nrank 2 {\na: arrived 1 tag 1\nb: arrived 1 tag 2\np: put 8b to 3\np ", join, " a\np ",
                join, " b\n}\nrank 3 {\narrived 1\n}\n");
  };
  const Model model{.o_ps = 0};
  EXPECT_GT(finish_of(goal("requires"), model)[3], 1'000'000'000);
  EXPECT_LT(finish_of(goal("anyof"), model)[3], 100'000'000);
}

TEST(Fidelity, APutThatMovesNoBytesIsFoundOut) {
  for (const char* const what : {"put 9b to", "get 9b from", "atomic 9b to", "fetch 9b from"}) {
    const Schedule schedule = fidelity_schedule(one_sided(what));
    auto payloads = Payloads::make(schedule, 65535, true);
    ASSERT_TRUE(payloads);
    LightNics nics(simulated::test_profile(), 2, [&](uint32_t rank) { return Host::setup(*payloads, rank); });
    const auto outcome = run_hosts(nics, *payloads, {1, 1}, schedule, {});
    ASSERT_FALSE(outcome) << what;
    EXPECT_EQ(outcome.error().code, Code::mismatch);
  }
}

}  // namespace
}  // namespace spinloom::goal
