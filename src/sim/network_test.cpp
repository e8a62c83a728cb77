// The order in which packets leave and arrive.
#include "sim/network.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/test_profile.hpp"

namespace spinloom::sim {
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

}  // namespace
}  // namespace spinloom::sim
