// The same schedules on LogGOPS, on NICs and on simulated nodes: the algebra by hand, and what must be equal.
#include "goal/fidelity.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>

#include "goal/host.hpp"
#include "goal/light_nics.hpp"
#include "goal/patterns.hpp"
#include "goal/test_support.hpp"
#include "schedule/goal.hpp"
#include "sim/pcie.hpp"
#include "sim/test_profile.hpp"

namespace spinloom::goal {
namespace {

using schedule::Schedule;

Schedule fidelity_schedule(const std::string& goal) {
  auto made = schedule::read_goal(goal);
  EXPECT_TRUE(made) << made.error().message;
  return made ? std::move(*made) : Schedule();
}

// What stages take by the profile, in ps.
struct Stages {
  explicit Stages(const sim::Profile& given) : profile(given), pcie(given) {}

  [[nodiscard]] int64_t to_host(int64_t bytes) const { return pcie.write_duration(bytes).ps; }
  // A command is at the NIC.
  [[nodiscard]] int64_t command() const { return to_host(profile.pcie.event_bytes) + profile.host.command_latency.ps; }
  // The NIC has read the first byte of what it sends: a request over PCIe, the bytes back.
  [[nodiscard]] int64_t read() const { return to_host(0) + 2 * profile.pcie.latency.ps; }
  [[nodiscard]] int64_t wire() const { return profile.link.switch_latency.ps + profile.link.wire.ps; }
  [[nodiscard]] int64_t line(int64_t bytes) const { return profile.link.byte_time.time_of(Bytes{bytes}).ps; }
  // A packet whose header comes at 0 is in host memory, at the earliest when it has been matched.
  [[nodiscard]] int64_t landed(int64_t bytes) const {
    const int64_t here = std::max(profile.match.header.ps, line(bytes));
    return here + profile.memory.channel_byte_time.time_of(Bytes{bytes}).ps + to_host(bytes);
  }
  // The same of an answer, which no list is searched for.
  [[nodiscard]] int64_t answer_landed(int64_t bytes) const {
    return std::max(profile.match.packet.ps, line(bytes)) + profile.memory.channel_byte_time.time_of(Bytes{bytes}).ps +
           to_host(bytes);
  }
  // A long message's last packet follows its last byte, or the packet before it.
  [[nodiscard]] int64_t landed_behind(int64_t bytes) const {
    const int64_t packet = profile.link.payload;
    const int64_t last = bytes - (bytes - 1) / packet * packet;
    const auto read_time = [&](int64_t some) { return profile.memory.channel_byte_time.time_of(Bytes{some}).ps; };
    return std::max(line(bytes) + read_time(last), line(bytes - last) + read_time(packet) + to_host(packet)) +
           to_host(last);
  }
  // The host can read an event.
  [[nodiscard]] int64_t event() const { return to_host(profile.pcie.event_bytes) + profile.pcie.latency.ps; }

  // The host can read a counter.
  [[nodiscard]] int64_t counter() const { return to_host(16) + profile.pcie.latency.ps; }

  const sim::Profile& profile;
  sim::Pcie pcie;
};

class EachFidelity : public testing::TestWithParam<Fidelity> {
 protected:
  std::vector<uint64_t> finish_of(const std::string& goal, const Model& model = {}) {
    const auto outcome = run_on(GetParam(), profile, fidelity_schedule(goal), model);
    EXPECT_TRUE(outcome) << outcome.error().message;
    return outcome ? outcome->finish_ps : std::vector<uint64_t>();
  }
  const sim::Profile profile = sim::test_profile();
  const Stages stages{profile};
  const int64_t o = 1'500'000;
};

TEST_P(EachFidelity, OneMessage) {
  // T = o + command + read + wire + landed(s) + event + o, if it is posted and one packet.
  const int64_t s = 1000;
  const int64_t there = o + stages.command() + stages.read() + stages.wire() + stages.landed(s) + stages.event();
  const auto finish = finish_of("num_ranks 2\nrank 0 {\nsend 1000b to 1\n}\nrank 1 {\nrecv 1000b from 0\n}\n");
  EXPECT_EQ(finish, std::vector<uint64_t>({static_cast<uint64_t>(o), static_cast<uint64_t>(there + o)}));
}

TEST_P(EachFidelity, ARendezvousIsARequestAndAGet) {
  // The entry and the request are two commands. The request has no bytes to read; nor has the get.
  // asked = o + command + command's PCIe time + wire + match + event;  the get leaves a command later.
  // T = asked + command + wire + match + read + wire + landed(s) + event + o
  // The send ends when its bytes have been read: asked + command + wire + match + read + s G + event.
  const int64_t s = 70'000;
  const int64_t asked = o + stages.to_host(profile.pcie.event_bytes) + stages.command() + stages.wire() +
                        profile.match.header.ps + stages.event();
  const int64_t leaves = asked + stages.command() + stages.wire() + profile.match.header.ps + stages.read();
  const int64_t there = leaves + stages.wire() + stages.landed_behind(s) + stages.event();
  const auto finish = finish_of("num_ranks 2\nrank 0 {\nsend 70000b to 1\n}\nrank 1 {\nrecv 70000b from 0\n}\n");
  EXPECT_EQ(finish, std::vector<uint64_t>({static_cast<uint64_t>(leaves + stages.line(s) + stages.event()),
                                           static_cast<uint64_t>(there + o)}));
}

TEST_P(EachFidelity, AnUnexpectedMessageIsCopied) {
  // T = w + command + event + o + s C: the append finds the message, and the CPU copies it at C = 2 B.
  const int64_t w = 1'000'000'000;
  const int64_t s = 10'000;
  const Rate memory = profile.host.memory_byte_time;
  const int64_t copy = Rate(2 * memory.ps_numerator(), memory.denominator()).time_of(Bytes{s}).ps;
  const auto finish = finish_of(
      "num_ranks 2\nrank 0 {\nsend 10000b to 1\n}\nrank 1 {\nc: calc 1000000\nr: recv 10000b from 0\nr requires "
      "c\n}\n");
  EXPECT_EQ(finish, std::vector<uint64_t>({static_cast<uint64_t>(o),
                                           static_cast<uint64_t>(w + stages.command() + stages.event() + o + copy)}));
}

TEST_P(EachFidelity, AnUnexpectedRequestIsNotCopied) {
  // T = w + command + event, then as a request that was expected.
  const int64_t w = 1'000'000'000;
  const int64_t s = 70'000;
  const int64_t asked = w + stages.command() + stages.event();
  const int64_t leaves = asked + stages.command() + stages.wire() + profile.match.header.ps + stages.read();
  const int64_t there = leaves + stages.wire() + stages.landed_behind(s) + stages.event();
  const auto finish = finish_of(
      "num_ranks 2\nrank 0 {\nsend 70000b to 1\n}\nrank 1 {\nc: calc 1000000\nr: recv 8b from -1\nr requires c\n}\n");
  EXPECT_EQ(finish[1], static_cast<uint64_t>(there + o));
}

TEST_P(EachFidelity, ACpuDoesOneThingAtATime) {
  // A message that has come waits for the computation; then T = w + o.
  const auto finish = finish_of("num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\nrecv 8b from 0\ncalc 1000000\n}\n");
  EXPECT_EQ(finish[1], static_cast<uint64_t>(1'000'000'000 + o));
}

TEST_P(EachFidelity, APutIsCountedWhereItLands) {
  // The target: o + command + read + wire + landed(s) + counter; no CPU works there. The put has ended when its last
  // byte has left: o + command + read + line(s) + event.
  const int64_t s = 1000;
  const int64_t leaves = o + stages.command() + stages.read();
  const int64_t there = leaves + stages.wire() + stages.landed(s) + stages.counter();
  EXPECT_EQ(finish_of(test::one_sided("put 1000b to")),
            std::vector<uint64_t>({static_cast<uint64_t>(leaves + stages.line(s) + stages.event()),
                                   static_cast<uint64_t>(there + 5000)}));
}

TEST_P(EachFidelity, AGetIsCountedWhenItsBytesHaveLeft) {
  // The request has no bytes: left = o + command + wire + match + read; the target counts when the last byte has left:
  // left + line(s) + counter. The initiator has ended at left + wire + landed(s) + event.
  const int64_t s = 1000;
  const int64_t left = o + stages.command() + stages.wire() + profile.match.header.ps + stages.read();
  const int64_t there = left + stages.wire() + stages.landed(s) + stages.event();
  EXPECT_EQ(finish_of(test::one_sided("get 1000b from")),
            std::vector<uint64_t>({static_cast<uint64_t>(there),
                                   static_cast<uint64_t>(left + stages.line(s) + stages.counter() + 5000)}));
}

TEST_P(EachFidelity, AnAtomicReadsItsTargetOverPcie) {
  // here(s) = what a packet needs to be at its NIC; then a read of s bytes and a write. A fetching one then answers from
  // the NIC and counts when its answer has left.
  const int64_t s = 8;
  const int64_t here =
      o + stages.command() + stages.read() + stages.wire() + std::max(profile.match.header.ps, stages.line(s));
  const int64_t changed = here + stages.read() + stages.to_host(s) + stages.to_host(s);
  EXPECT_EQ(finish_of(test::one_sided("atomic 8b to"))[1], static_cast<uint64_t>(changed + stages.counter() + 5000));
  const auto fetched = finish_of(test::one_sided("fetch 8b from"));
  EXPECT_EQ(fetched[1], static_cast<uint64_t>(changed + stages.line(s) + stages.counter() + 5000));
  EXPECT_EQ(fetched[0], static_cast<uint64_t>(changed + stages.wire() + stages.answer_landed(s) + stages.event()));
}

TEST_P(EachFidelity, LongAtomicsAreSeveral) {
  // The last part counts, so that one has arrived when all bytes have; their values are checked at `full`.
  for (const char* const what : {"atomic 100000b to", "fetch 100000b from"}) {
    EXPECT_GT(finish_of(test::one_sided(what))[1], finish_of(test::one_sided("put 100000b to"))[1]);
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

TEST_P(EachFidelity, TheFirstOfSeveralLeadsOn) {
  // c begins after 7 ns, and b goes on for 1 ms.
  EXPECT_EQ(finish_of("num_ranks 1\nrank 0 {\na: calc 7\nb: calc 1000000 cpu 1\nc: calc 5 cpu 2\nd: calc 3 cpu 2\n"
                      "c anyof a\nc anyof b\nd requires c\nd anyof b\n}\n")[0],
            1'000'003'000);
}

TEST_P(EachFidelity, ALayoutCostsItsCpu) {
  // Packed and unpacked at P for each byte: 2 s P later.
  Schedule schedule(2);
  schedule::Builder builder;
  const auto layout = schedule.number_of_layout(schedule::Layout{"every other", 250, 1000});
  using schedule::Kind;
  builder.add(schedule.number_of({.size = 1000, .kind = Kind::send}, {layout, schedule::contiguous}), 1);
  schedule.intern(0, builder.take());
  builder.add(schedule.number_of({.size = 1000, .kind = Kind::receive}, {layout, schedule::contiguous}), 0);
  schedule.intern(1, builder.take());
  const auto without = run_on(GetParam(), profile, schedule, {});
  const auto with = run_on(GetParam(), profile, schedule, {.layout = Rate(500, 1)});
  ASSERT_TRUE(without && with);
  EXPECT_EQ(with->makespan_ps, without->makespan_ps + 2 * 1000 * 500);
}

TEST_P(EachFidelity, WhoStallsSaysWhatTheModelSays) {
  const char* const goals[] = {
      "num_ranks 2\nrank 0 {\nr: recv 8b from 1\ns: send 8b to 1\ns requires r\n}\n"
      "rank 1 {\nr: recv 8b from 0\ns: send 8b to 0\ns requires r\n}\n",
      "num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\n}\n",
      "num_ranks 2\nrank 0 {\nc: calc 5\ns: send 99999b to 1 tag 3\nc requires s\n}\nrank 1 {\nrecv 8b from -1 tag "
      "4\n}\n",
      "num_ranks 3\nrank 0 {\n}\nrank 1 {\n}\nrank 2 {\n}\n",
      "num_ranks 2\nrank 0 {\nput 1b to 1 tag 4\n}\nrank 1 {\na: arrived 2 tag 4\nb: calc 3\nb anyof a\n}\n"};
  for (const char* const goal : goals) {
    const Schedule schedule = fidelity_schedule(goal);
    const auto expected = run(schedule, {});
    const auto found = run_on(GetParam(), profile, schedule, {});
    ASSERT_FALSE(expected);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, Code::stalled);
    EXPECT_EQ(found.error().message, expected.error().message);
  }
}

TEST_P(EachFidelity, WhatItCannotDoIsAnError) {
  const auto error = [&](const std::string& goal, const Model& model = {}) {
    const auto outcome = run_on(GetParam(), profile, fidelity_schedule(goal), model);
    return outcome ? "" : outcome.error().message;
  };
  const std::string head = "num_ranks 2\nrank 0 {\nsend ";
  const std::string tail = " to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n";
  EXPECT_NE(error(head + "2000000000000b" + tail).find("message_bytes_most"), std::string::npos);
  EXPECT_NE(error("num_ranks 2\nrank 0 {\nsend 8b to 1 nic 1\n}\nrank 1 {\n}\n").find("NIC 1"), std::string::npos);
  EXPECT_NE(error("num_ranks 1\nrank 0 {\ncalc 9000000000000000\n}\n").find("53 days"), std::string::npos);
}

TEST_P(EachFidelity, AHopIsLater) {
  // Two ranks on two switches of a ring: T = T(one switch) + hop, in one packet or several.
  for (const int s : {8, 1000, 30'000, 100'000}) {
    const std::string goal = text("num_ranks 2\nrank 0 {\nsend ", s, "b to 1\n}\nrank 1 {\nrecv 8b from 0\n}\n");
    Model model{.S_bytes = UINT64_MAX};
    const auto near = finish_of(goal, model);
    model.network = network::Config{};
    model.network->topology = network::Torus{.sizes = {2}, .hosts = 1};
    model.network->hop_ps = 77'000;
    EXPECT_EQ(finish_of(goal, model)[1], near[1] + 77'000);
  }
}

TEST_P(EachFidelity, TwoFlowsShareALink) {
  // Ranks 0 and 1 of one switch send s bytes each to ranks 2 and 3 of another: the second one is there s G later.
  const int s = 1'000'000;
  std::string goal = "num_ranks 4\n";
  for (int rank = 0; rank < 2; ++rank) goal += text("rank ", rank, " {\nsend ", s, "b to ", rank + 2, "\n}\n");
  for (int rank = 2; rank < 4; ++rank) goal += text("rank ", rank, " {\nrecv ", s, "b from ", rank - 2, "\n}\n");
  Model model{.S_bytes = UINT64_MAX};
  const auto apart = finish_of(goal, model);
  model.network = network::Config{};
  model.network->topology = network::Torus{.sizes = {2}, .hosts = 2};
  const auto shared = finish_of(goal, model);
  const auto later = static_cast<int64_t>(std::max(shared[2], shared[3]) - apart[2]) -
                     static_cast<int64_t>(model.network->hop_ps) - stages.line(s);
  EXPECT_LE(std::abs(later), stages.line(3 * profile.link.payload));
}

TEST(Fidelity, BytesThatDoNotFitInMemoryAreForTheNics) {
  const std::string goal = "num_ranks 2\nrank 0 {\nsend 5000000000b to 1\n}\nrank 1 {\nrecv 5000000000b from 0\n}\n";
  const sim::Profile profile = sim::test_profile();
  const auto full = run_on(Fidelity::full, profile, fidelity_schedule(goal), {});
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, Code::exhausted);
  EXPECT_NE(full.error().message.find("memory_bytes_most"), std::string::npos);
  EXPECT_TRUE(run_on(Fidelity::nic, profile, fidelity_schedule(goal), {}));
}

TEST(Fidelity, OneMessageOfAnySizeTakesTheSameOnNicsAndNodes) {
  const sim::Profile profile = sim::test_profile();
  for (const uint64_t S : {uint64_t{0}, UINT64_MAX}) {
    for (const int64_t s : {0, 1, 64, 2047, 2048, 2049, 4096, 5000, 65'536, 1'000'001}) {
      const Schedule schedule =
          fidelity_schedule(text("num_ranks 2\nrank 0 {\nsend ", s, "b to 1\n}\nrank 1 {\nrecv ", s, "b from 0\n}\n"));
      const auto nic = run_on(Fidelity::nic, profile, schedule, {.S_bytes = S});
      const auto full = run_on(Fidelity::full, profile, schedule, {.S_bytes = S});
      ASSERT_TRUE(nic && full);
      EXPECT_EQ(nic->finish_ps, full->finish_ps) << s << " B, S = " << S;
    }
  }
}

TEST(Fidelity, ADriverThatMovesNoBytesIsFoundOut) {
  const Schedule schedule = fidelity_schedule("num_ranks 2\nrank 0 {\nsend 9b to 1\n}\nrank 1 {\nrecv 9b from 0\n}\n");
  auto payloads = Payloads::make(schedule, 65535, true);
  ASSERT_TRUE(payloads);
  LightNics nics(sim::test_profile(), 2, [&](uint32_t rank) { return Host::setup(*payloads, rank); });
  const auto outcome = run_hosts(nics, *payloads, {1, 1}, schedule, {});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Code::mismatch);
  EXPECT_NE(outcome.error().message.find("of 9 of the message of operation 0 of rank 0 is wrong at rank 1"),
            std::string::npos)
      << outcome.error().message;
}

TEST(Fidelity, APutThatMovesNoBytesIsFoundOut) {
  for (const char* const what : {"put 9b to", "get 9b from", "atomic 9b to", "fetch 9b from"}) {
    const Schedule schedule = fidelity_schedule(test::one_sided(what));
    auto payloads = Payloads::make(schedule, 65535, true);
    ASSERT_TRUE(payloads);
    LightNics nics(sim::test_profile(), 2, [&](uint32_t rank) { return Host::setup(*payloads, rank); });
    const auto outcome = run_hosts(nics, *payloads, {1, 1}, schedule, {});
    ASSERT_FALSE(outcome) << what;
    EXPECT_EQ(outcome.error().code, Code::mismatch);
  }
}

TEST(Fidelity, OneWrongByteIsNamed) {
  const Schedule schedule = fidelity_schedule("num_ranks 2\nrank 0 {\nsend 8b to 1\nsend 100b to 1\n}\nrank 1 {\n}\n");
  const auto payloads = Payloads::make(schedule, 65535, true);
  ASSERT_TRUE(payloads);
  sim::ZeroedBytes memory(100);
  std::copy_n(payloads->sent(0, 1), 100, memory.begin());
  EXPECT_TRUE(payloads->check(memory.data(), 100, 1, 0, 1));
  EXPECT_FALSE(payloads->check(memory.data(), 8, 1, 0, 0)) << "the bytes of another message";
  EXPECT_FALSE(payloads->check(memory.data(), 100, 1, 0, 1, 1)) << "not under this mask";
  memory[63] ^= 1;
  const Status wrong = payloads->check(memory.data(), 100, 1, 0, 1);
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(wrong.error().message.starts_with("byte 63 of 100 ")) << wrong.error().message;
}

TEST(LightNics, ANicIsThereAsLongAsItsRankNeedsIt) {
  // Four pairs exchange one after the other: at no time there are more than two NICs.
  std::string goal = "num_ranks 8\n";
  for (int pair = 0; pair < 4; ++pair) {
    const int from = 2 * pair;
    goal += text("rank ", from, " {\nc: calc ", (pair + 1) * 100'000, "\ns: send 70000b to ", from + 1,
                 "\ns requires c\n}\nrank ", from + 1, " {\nc: calc ", (pair + 1) * 100'000, "\nr: recv 70000b from ",
                 from, "\nr requires c\n}\n");
  }
  const Schedule schedule = fidelity_schedule(goal);
  auto payloads = Payloads::make(schedule, 65535, false);
  LightNics nics(sim::test_profile(), 8, [&](uint32_t rank) { return Host::setup(*payloads, rank); });
  ASSERT_TRUE(run_hosts(nics, *payloads, {1, 1}, schedule, {}));
  EXPECT_EQ(nics.live(), 0);
  EXPECT_EQ(nics.live_most(), 2);
}

TEST(LightNics, AMessageThatNobodyTookKeepsItsNic) {
  const Schedule schedule = fidelity_schedule("num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\ncalc 1\n}\n");
  auto payloads = Payloads::make(schedule, 65535, false);
  LightNics nics(sim::test_profile(), 2, [&](uint32_t rank) { return Host::setup(*payloads, rank); });
  EXPECT_FALSE(run_hosts(nics, *payloads, {1, 1}, schedule, {}));
  EXPECT_EQ(nics.live(), 1);
}

std::string matches_of(const Schedule& schedule, const Record& record) {
  std::string found;
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    for (uint32_t number = 0; number < schedule.program(rank).size(); ++number) {
      const Trace& trace = record.of(rank, number);
      if (schedule.shape(schedule.program(rank).operations[number]).kind > schedule::Kind::compute) continue;
      if (trace.partner != none) {
        found += text(rank, ".", number, "-", trace.partner_rank, ".", trace.partner, " ");
      }
    }
  }
  return found;
}

// Each operation was free when all that it waits for had come, and one of those of its any-of edges.
void expect_order(const Schedule& schedule, const Record& record) {
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    const schedule::Program& program = schedule.program(rank);
    std::map<uint32_t, uint64_t> first;
    for (uint32_t before = 0; before < program.size(); ++before) {
      for (const schedule::Edge& edge : program.edges_of(before)) {
        const Trace& trace = record.of(rank, before);
        const bool is_receive = schedule.shape(program.operations[before]).kind == schedule::Kind::receive;
        const uint64_t begin = is_receive ? trace.posted_ps : trace.begin_ps;
        const uint64_t came = edge.awaits() == schedule::Awaits::end ? trace.end_ps : begin;
        if (edge.join() == schedule::Join::all) {
          EXPECT_LE(came, record.of(rank, edge.to()).free_ps) << rank << ": " << edge.to() << " behind " << before;
        } else {
          const auto [known, _] = first.emplace(edge.to(), came);
          known->second = std::min(known->second, came);
        }
      }
    }
    for (const auto& [number, came] : first) EXPECT_LE(came, record.of(rank, number).free_ps) << rank << ": " << number;
  }
}

TEST(Fidelity, RandomSchedulesMeanTheSame) {
  const sim::Profile profile = sim::test_profile();
  uint64_t determined = 0;
  uint64_t stalled = 0;
  uint64_t refused = 0;
  uint64_t one_sided = 0;
  uint64_t firsts = 0;
  for_seeds(600, [&](Random& random) {
    const uint64_t sizes[] = {0, 1, 4, 10, 65535, UINT64_MAX};
    const Model model{.o_ps = random.below(3) * 700'000,
                      .O = {static_cast<int64_t>(random.below(2)) * 9, 2},
                      .S_bytes = sizes[random.below(6)],
                      .unit_ps = random.chance(1, 2) ? 1000u : 1'000'000u};
    const Schedule schedule =
        test::random_schedule(random, random.between(1, 10), test::Sizes::usual, test::Words::all);
    Record expected;
    const auto message = run(schedule, model, &expected);
    for (const Fidelity fidelity : {Fidelity::nic, Fidelity::full}) {
      Record record;
      const auto outcome = run_on(fidelity, profile, schedule, model, &record);
      if (!outcome && outcome.error().code == Code::unsupported) {
        ++refused;
        continue;
      }
      ASSERT_TRUE(outcome || outcome.error().code == Code::stalled) << outcome.error().message;
      if (outcome) expect_order(schedule, record);
      if (!test::is_determined(schedule)) continue;
      for (const schedule::Program& program : schedule.programs()) {
        for (const schedule::Operation& operation : program.operations) {
          one_sided += schedule::is_one_sided(schedule.shape(operation).kind) && outcome.ok() ? 1 : 0;
        }
        firsts += !program.wait_for_first().empty() && outcome.ok() ? 1 : 0;
      }
      ++determined;
      ASSERT_EQ(outcome.ok(), message.ok()) << (outcome ? message.error().message : outcome.error().message);
      if (outcome) {
        EXPECT_EQ(matches_of(schedule, record), matches_of(schedule, expected));
        EXPECT_EQ(outcome->compute_ps, message->compute_ps);
      } else {
        ++stalled;
        const auto sum = [](const std::string& said) { return said.substr(said.rfind("; in all") + 1); };
        EXPECT_EQ(sum(outcome.error().message), sum(message.error().message));
      }
    }
  });
  if (std::getenv("SPINLOOM_TEST_SEED") != nullptr) return;
  EXPECT_GT(determined, 80) << "schedules must be compared";
  EXPECT_GT(stalled, 0);
  EXPECT_GT(one_sided, 100);
  EXPECT_GT(firsts, 20);
  EXPECT_LT(refused, 900);
}

TEST(Fidelity, PatternsMatchTheSamePairs) {
  const sim::Profile profile = sim::test_profile();
  for (const char* const name : {"dissemination", "binomial_broadcast", "linear_gather", "pairwise_exchange"}) {
    for (const uint64_t bytes : {uint64_t{8}, uint64_t{100'000}}) {
      const auto schedule = make_pattern(name, 12, bytes);
      ASSERT_TRUE(schedule) << name;
      Record message;
      ASSERT_TRUE(run(*schedule, {}, &message));
      for (const Fidelity fidelity : {Fidelity::nic, Fidelity::full}) {
        Record record;
        const auto outcome = run_on(fidelity, profile, *schedule, {}, &record);
        ASSERT_TRUE(outcome) << name << ": " << outcome.error().message;
        EXPECT_EQ(matches_of(*schedule, record), matches_of(*schedule, message)) << name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, EachFidelity, testing::Values(Fidelity::nic, Fidelity::full));

}  // namespace
}  // namespace spinloom::goal
