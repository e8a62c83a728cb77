// The order in which packets leave and arrive.
#include "simulated/node/network.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "simulated/node/testing/profile.hpp"

namespace spinloom::simulated {
namespace {

TEST(DepartureOrder, InOrderWithoutAWindow) {
  EXPECT_EQ(departure_order(5, {1, false, 1}, nic::Rank{0}, 1), (std::vector<uint32_t>{0, 1, 2, 3, 4}));
}

TEST(DepartureOrder, IsAPermutationWithinTheWindowThatKeepsTheEnds) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const uint32_t window = 8;
    const auto order = departure_order(100, {window, false, seed}, nic::Rank{0}, 1);
    EXPECT_EQ(order.front(), 0u) << "seed " << seed;
    EXPECT_EQ(order.back(), 99u) << "seed " << seed;
    auto sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (uint32_t i = 0; i < 100; ++i) ASSERT_EQ(sorted[i], i) << "seed " << seed;
    // A packet never leaves before all but window - 1 of its predecessors have left.
    for (uint32_t place = 0; place < 100; ++place) ASSERT_LT(order[place], place + window) << "seed " << seed;
    EXPECT_FALSE(std::is_sorted(order.begin(), order.end())) << "seed " << seed;
  }
}

TEST(DepartureOrder, DiffersBetweenMessagesAndSenders) {
  const Ordering ordering{8, false, 1};
  const auto order = departure_order(100, ordering, nic::Rank{0}, 1);
  EXPECT_NE(order, departure_order(100, ordering, nic::Rank{0}, 2));
  EXPECT_NE(order, departure_order(100, ordering, nic::Rank{1}, 1));
}

// Two senders, and one receiver that notes the packets of rank 0.
class Listener final : public Receiver {
 public:
  void on_arrival(std::unique_ptr<Arrival> arrival) override {
    if (arrival->packet.message == 2) offsets.push_back(arrival->packet.offset);
  }
  std::vector<uint64_t> offsets;
};

std::vector<nic::Packet> message_of(uint32_t source, uint64_t id, uint64_t packets) {
  std::vector<nic::Packet> made(packets);
  for (uint64_t i = 0; i < packets; ++i) {
    made[i].source = nic::Rank{source};
    made[i].target = nic::Rank{2};
    made[i].message = id;
    made[i].offset = i;
    made[i].message_length = packets;
  }
  return made;
}

std::vector<uint64_t> arrivals_of_message_2(bool others_before) {
  const Profile profile = test_profile();
  EventQueue events;
  Network network(events, profile, {8, false, 1});
  Listener nobody, other, listener;
  network.attach(nic::Rank{0}, nobody);
  network.attach(nic::Rank{1}, other);
  network.attach(nic::Rank{2}, listener);
  if (others_before) {
    network.inject(nic::Rank{0}, message_of(0, 1, 30), {}, [] {});
    network.inject(nic::Rank{1}, message_of(1, 1, 20), {}, [] {});
  }
  network.inject(nic::Rank{0}, message_of(0, 2, 50), {}, [] {});
  while (events.step()) {
  }
  return listener.offsets;
}

TEST(Network, WhatWasSentBeforeDoesNotChangeAnOrder) {
  const auto alone = arrivals_of_message_2(false);
  ASSERT_EQ(alone.size(), 50u);
  EXPECT_FALSE(std::is_sorted(alone.begin(), alone.end()));
  EXPECT_EQ(alone, arrivals_of_message_2(true));
}

// When the first byte of a packet came.
class Clock final : public Receiver {
 public:
  explicit Clock(const EventQueue& events) : events_(events) {}
  void on_arrival(std::unique_ptr<Arrival>) override { came.push_back(events_.now()); }
  std::vector<Time> came;

 private:
  const EventQueue& events_;
};

// Six ranks, two at each of three switches in a ring; each (source, target) sends one packet of `bytes` at time 0. The
// times by target.
std::vector<std::vector<Time>> times_in_a_ring(const std::vector<std::pair<uint32_t, uint32_t>>& sent, uint64_t bytes,
                                               Time hop) {
  const Profile profile = test_profile();
  EventQueue events;
  const network::Config config{.topology = network::Torus{{3}, 2}, .hop_ps = static_cast<uint64_t>(hop.ps)};
  auto switches = Network::switches_of(profile, config, 6);
  EXPECT_TRUE(switches.ok());
  Network network(events, profile, {}, std::move(*switches));
  std::vector<std::unique_ptr<Clock>> clocks;
  for (uint32_t rank = 0; rank < 6; ++rank) {
    clocks.push_back(std::make_unique<Clock>(events));
    network.attach(nic::Rank{rank}, *clocks.back());
  }
  const std::vector<uint8_t> data(bytes);
  for (const auto& [source, target] : sent) {
    std::vector<nic::Packet> packets = message_of(source, 1, 1);
    packets[0].target = nic::Rank{target};
    packets[0].payload = {.bytes = data.data(), .length = bytes};
    network.inject(nic::Rank{source}, std::move(packets), {}, [] {});
  }
  while (events.step()) {
  }
  std::vector<std::vector<Time>> came;
  for (const auto& clock : clocks) came.push_back(clock->came);
  return came;
}

TEST(Network, APacketAloneTakesAHopForEachLinkBetweenSwitches) {
  const Profile profile = test_profile();
  const Time hop = 70'000_ps;
  // T = switch + wire + h hop; h: 0 at one switch, 1 between two of three in a ring
  const Time near = profile.link.switch_latency + profile.link.wire;
  EXPECT_EQ(times_in_a_ring({{0, 1}}, 2048, hop)[1], std::vector<Time>{near});
  EXPECT_EQ(times_in_a_ring({{0, 2}}, 2048, hop)[2], std::vector<Time>{near + hop});
  EXPECT_EQ(times_in_a_ring({{0, 4}}, 2048, hop)[4], std::vector<Time>{near + hop});
}

TEST(Network, PacketsThatMeetOnALinkCrossOneAfterTheOther) {
  const Profile profile = test_profile();
  const Time hop = 70'000_ps;
  const Time alone = profile.link.switch_latency + profile.link.wire + hop;
  const Time crossing{static_cast<int64_t>(profile.link.byte_time.ps_down(2048))};
  // ranks 0 and 1 to 2 and 3: one link from the first switch to the second
  const auto met = times_in_a_ring({{0, 2}, {1, 3}}, 2048, hop);
  EXPECT_EQ(met[2], std::vector<Time>{alone});
  EXPECT_EQ(met[3], std::vector<Time>{alone + crossing});
  // ranks 0 and 1 to 2 and 4: a link each
  const auto apart = times_in_a_ring({{0, 2}, {1, 4}}, 2048, hop);
  EXPECT_EQ(apart[2], std::vector<Time>{alone});
  EXPECT_EQ(apart[4], std::vector<Time>{alone});
}

TEST(Network, RefusesPathsThatDependOnTheLoad) {
  const Profile profile = test_profile();
  const network::Config config{.topology = network::Torus{{3}, 2}, .routing = network::Routing::adaptive};
  const auto refused = Network::switches_of(profile, config, 6);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::unsupported);
}

}  // namespace
}  // namespace spinloom::simulated
