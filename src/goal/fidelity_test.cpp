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

TEST_P(EachFidelity, WhoStallsSaysWhatTheModelSays) {
  const char* const goals[] = {
      "num_ranks 2\nrank 0 {\nr: recv 8b from 1\ns: send 8b to 1\ns requires r\n}\n"
      "rank 1 {\nr: recv 8b from 0\ns: send 8b to 0\ns requires r\n}\n",
      "num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\n}\n",
      "num_ranks 2\nrank 0 {\nc: calc 5\ns: send 99999b to 1 tag 3\nc requires s\n}\nrank 1 {\nrecv 8b from -1 tag "
      "4\n}\n",
      "num_ranks 3\nrank 0 {\n}\nrank 1 {\n}\nrank 2 {\n}\n"};
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

TEST(Fidelity, AHopIsLaterOnNodes) {
  // Two ranks on two switches of a ring: T = T(one switch) + hop.
  const Schedule schedule =
      fidelity_schedule("num_ranks 2\nrank 0 {\nsend 1000b to 1\n}\nrank 1 {\nrecv 1000b from 0\n}\n");
  const sim::Profile profile = sim::test_profile();
  Model model;
  const auto near = run_on(Fidelity::full, profile, schedule, model);
  model.network = network::Config{};
  model.network->topology = network::Torus{.sizes = {2}, .hosts = 1};
  model.network->hop_ps = 77'000;
  const auto far = run_on(Fidelity::full, profile, schedule, model);
  ASSERT_TRUE(near && far);
  EXPECT_EQ(far->makespan_ps, near->makespan_ps + 77'000);
  const auto refused = run_on(Fidelity::nic, profile, schedule, model);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("one switch"), std::string::npos);
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

TEST(Fidelity, OneWrongByteIsNamed) {
  const Schedule schedule = fidelity_schedule("num_ranks 2\nrank 0 {\nsend 8b to 1\nsend 100b to 1\n}\nrank 1 {\n}\n");
  const auto payloads = Payloads::make(schedule, 65535, true);
  ASSERT_TRUE(payloads);
  sim::ZeroedBytes memory(100);
  std::copy_n(payloads->sent(0, 1), 100, memory.begin());
  EXPECT_TRUE(payloads->check(memory, 100, 1, 0, 1));
  EXPECT_FALSE(payloads->check(memory, 8, 1, 0, 0)) << "the bytes of another message";
  memory[63] ^= 1;
  const Status wrong = payloads->check(memory, 100, 1, 0, 1);
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

// Who gets whose message is the graph's own if no receive takes any and no two messages have sender, receiver and tag
// in common.
bool is_determined(const Schedule& schedule) {
  std::map<std::tuple<uint32_t, uint32_t, uint32_t, schedule::Kind>, uint32_t> found;
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    for (const schedule::Operation& operation : schedule.program(rank).operations) {
      const schedule::Shape& shape = schedule.shape(operation);
      if (shape.kind == schedule::Kind::compute) continue;
      const uint32_t peer = schedule.peer(rank, operation);
      if (peer == schedule::any || shape.tag == schedule::any) return false;
      const bool sends = shape.kind == schedule::Kind::send;
      if (++found[{sends ? rank : peer, sends ? peer : rank, shape.tag, shape.kind}] > 1) return false;
    }
  }
  return true;
}

std::string matches_of(const Schedule& schedule, const Record& record) {
  std::string found;
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    for (uint32_t number = 0; number < schedule.program(rank).size(); ++number) {
      const Trace& trace = record.of(rank, number);
      if (trace.partner != none) {
        found += text(rank, ".", number, "-", trace.partner_rank, ".", trace.partner, " ");
      }
    }
  }
  return found;
}

TEST(Fidelity, RandomSchedulesMeanTheSame) {
  const sim::Profile profile = sim::test_profile();
  uint64_t determined = 0;
  uint64_t stalled = 0;
  uint64_t refused = 0;
  for_seeds(400, [&](Random& random) {
    const uint64_t sizes[] = {0, 1, 4, 10, 65535, UINT64_MAX};
    const Model model{.o_ps = random.below(3) * 700'000,
                      .O = {static_cast<int64_t>(random.below(2)) * 9, 2},
                      .S_bytes = sizes[random.below(6)],
                      .unit_ps = random.chance(1, 2) ? 1000u : 1'000'000u};
    const Schedule schedule = test::random_schedule(random, random.between(1, 10), test::Sizes::usual);
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
      if (!is_determined(schedule)) continue;
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
  EXPECT_LT(refused, 600);
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
