// Runs the same schedules on LogGOPS, on NICs and on simulated nodes; compares with the algebra by hand and each other.
#include "predict/goal/nics/fidelity.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "predict/goal/nics/host.hpp"
#include "predict/goal/nics/light_nics.hpp"
#include "predict/goal/testing/fidelity.hpp"
#include "predict/goal/testing/layouts.hpp"
#include "simulated/node/testing/profile.hpp"

namespace spinloom::goal {
namespace {

using namespace test;
using schedule::Schedule;

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

TEST_P(EachFidelity, TheFirstOfSeveralLeadsOn) {
  // c begins after 7 ns, and b goes on for 1 ms.
  EXPECT_EQ(finish_of("num_ranks 1\nrank 0 {\na: calc 7\nb: calc 1000000 cpu 1\nc: calc 5 cpu 2\nd: calc 3 cpu 2\n"
                      "c anyof a\nc anyof b\nd requires c\nd anyof b\n}\n")[0],
            1'000'003'000);
}

TEST_P(EachFidelity, ALayoutCostsItsCpu) {
  // Packed and unpacked at P for each byte: 2 s P later.
  const Schedule schedule = test::layouts_at_both_ends();
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
  EXPECT_NE(error(head + "2000000000000b" + tail).find("message_bytes_max"), std::string::npos);
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
  const simulated::Profile profile = simulated::test_profile();
  const auto full = run_on(Fidelity::full, profile, fidelity_schedule(goal), {});
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, Code::exhausted);
  EXPECT_NE(full.error().message.find("memory_bytes_max"), std::string::npos);
  EXPECT_TRUE(run_on(Fidelity::nic, profile, fidelity_schedule(goal), {}));
}

TEST(Fidelity, OneMessageOfAnySizeTakesTheSameOnNicsAndNodes) {
  const simulated::Profile profile = simulated::test_profile();
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
  LightNics nics(simulated::test_profile(), 2, [&](uint32_t rank) { return Host::setup(*payloads, rank); });
  const auto outcome = run_hosts(nics, *payloads, {1, 1}, schedule, {});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Code::mismatch);
  EXPECT_NE(outcome.error().message.find("of 9 of the message of operation 0 of rank 0 is wrong at rank 1"),
            std::string::npos)
      << outcome.error().message;
}

TEST(Fidelity, OneWrongByteIsNamed) {
  const Schedule schedule = fidelity_schedule("num_ranks 2\nrank 0 {\nsend 8b to 1\nsend 100b to 1\n}\nrank 1 {\n}\n");
  const auto payloads = Payloads::make(schedule, 65535, true);
  ASSERT_TRUE(payloads);
  simulated::ZeroedBytes memory(100);
  std::copy_n(payloads->send_data(0, 1), 100, memory.begin());
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
  LightNics nics(simulated::test_profile(), 8, [&](uint32_t rank) { return Host::setup(*payloads, rank); });
  ASSERT_TRUE(run_hosts(nics, *payloads, {1, 1}, schedule, {}));
  EXPECT_EQ(nics.nic_count(), 0);
  EXPECT_EQ(nics.nic_count_max(), 2);
}

TEST(LightNics, AMessageThatNobodyTookKeepsItsNic) {
  const Schedule schedule = fidelity_schedule("num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\ncalc 1\n}\n");
  auto payloads = Payloads::make(schedule, 65535, false);
  LightNics nics(simulated::test_profile(), 2, [&](uint32_t rank) { return Host::setup(*payloads, rank); });
  EXPECT_FALSE(run_hosts(nics, *payloads, {1, 1}, schedule, {}));
  EXPECT_EQ(nics.nic_count(), 1);
}

INSTANTIATE_TEST_SUITE_P(All, EachFidelity, testing::Values(Fidelity::nic, Fidelity::full));

}  // namespace
}  // namespace spinloom::goal
