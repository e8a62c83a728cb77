// Switches with processors: what they take, when what they send arrives, and that all others do not notice.
#include <gtest/gtest.h>

#include <memory>

#include "base/random.hpp"
#include "simulated/node/network.hpp"
#include "simulated/node/testing/profile.hpp"

namespace spinloom::simulated {
namespace {

constexpr Time hop = 70'000_ps;
constexpr uint32_t ranks = 8;  // radix 4, two levels: four switches of two, two above them

struct HeardPacket {
  Time first_byte;
  uint32_t source;
  uint64_t message;
  uint64_t offset;
  bool operator==(const HeardPacket&) const = default;
};

class Ear final : public Receiver {
 public:
  explicit Ear(const EventQueue& events) : events_(events) {}
  void on_arrival(std::unique_ptr<Arrival> arrival) override {
    const nic::Packet& packet = arrival->packet;
    arrivals.push_back({events_.now(), packet.source.value, packet.message, packet.offset});
    last_byte = arrival->last_byte;
    bytes = arrival->bytes;
  }
  std::vector<HeardPacket> arrivals;
  Time last_byte;
  std::vector<uint8_t> bytes;

 private:
  const EventQueue& events_;
};

struct Bench {
  explicit Bench(const Ordering& ordering = {}) : profile(test_profile()) {
    const network::Config config{.topology = network::FatTree{.radix = 4, .levels = 2},
                                 .hop_ps = static_cast<uint64_t>(hop.ps)};
    auto switches = Network::switches_of(profile, config, ranks);
    EXPECT_TRUE(switches.ok());
    network = std::make_unique<Network>(events, profile, ordering, std::move(*switches));
    for (uint32_t rank = 0; rank < ranks; ++rank) attach(rank);
  }
  Ear& attach(uint32_t rank) {
    ears.resize(std::max<size_t>(ears.size(), rank + 1));
    ears[rank] = std::make_unique<Ear>(events);
    network->attach(nic::Rank{rank}, *ears[rank]);
    return *ears[rank];
  }
  Ear& equip(uint32_t at) { return attach(network->rank_of_switch(at).value); }
  // One message in packets of 1000 B.
  void send(
      uint32_t source, uint32_t target, uint64_t message, uint64_t bytes, Time ready = {}, uint64_t match_bits = 0,
      std::function<void()> sent = [] {}) {
    std::vector<nic::Packet> packets;
    for (uint64_t at = 0; at < bytes; at += 1000) {
      nic::Packet& packet = packets.emplace_back();
      packet.source = nic::Rank{source};
      packet.target = nic::Rank{target};
      packet.message = message;
      packet.message_length = bytes;
      packet.offset = at;
      packet.payload = {.bytes = memory.data() + at, .length = std::min<uint64_t>(1000, bytes - at)};
      packet.fields.match_bits = match_bits;
    }
    network->inject(nic::Rank{source}, std::move(packets), ready, std::move(sent));
  }
  void drain() {
    while (events.step()) {
    }
  }
  [[nodiscard]] Time crossing(int64_t bytes) const { return profile.link.byte_time.time_of(Bytes{bytes}); }
  [[nodiscard]] Time near() const { return profile.link.switch_latency + profile.link.wire; }

  Profile profile;
  EventQueue events;
  std::unique_ptr<Network> network;
  std::vector<std::unique_ptr<Ear>> ears;
  std::vector<uint8_t> memory = std::vector<uint8_t>(1 << 16, 7);
};

TEST(Switch, TakesAPacketWhenItsFirstByteIsThere) {
  Bench bench;
  Ear& ear = bench.equip(0);
  ASSERT_TRUE(bench.network->install(0, {.match_bits = 5}).ok());
  bench.send(0, 6, 1, 1000, {}, 5);
  bench.drain();
  // T = switch + wire; the last byte comes b G later
  ASSERT_EQ(ear.arrivals, (std::vector<HeardPacket>{{bench.near(), 0, 1, 0}}));
  EXPECT_EQ(ear.last_byte, bench.near() + bench.crossing(1000));
  EXPECT_EQ(ear.bytes, std::vector<uint8_t>(1000, 7));
  EXPECT_TRUE(bench.ears[6]->arrivals.empty());
}

TEST(Switch, TakesWhatIsAddressedToIt) {
  Bench bench;
  Ear& first = bench.equip(0);
  Ear& above = bench.equip(4);
  bench.send(1, bench.network->rank_of_switch(0).value, 1, 1000);
  bench.send(bench.network->rank_of_switch(0).value, bench.network->rank_of_switch(4).value, 2, 1000, 500'000_ps);
  bench.drain();
  EXPECT_EQ(first.arrivals, (std::vector<HeardPacket>{{bench.near(), 1, 1, 0}}));
  EXPECT_EQ(above.arrivals, (std::vector<HeardPacket>{{500'000_ps + hop, ranks, 2, 0}}));
}

TEST(Switch, SendsOverEachOfItsLinksAtOnceAndQueuesAtEach) {
  Bench bench;
  bench.equip(0);
  const uint32_t own = bench.network->rank_of_switch(0).value;
  const Time ready = 1'000'000_ps;
  const Time each = bench.crossing(1000);
  std::vector<Time> sent(4);
  const auto note = [&](size_t which) { return [&, which] { sent[which] = bench.events.now(); }; };
  bench.send(own, 0, 1, 1000, ready, 0, note(0));
  bench.send(own, 1, 2, 1000, ready, 0, note(1));
  bench.send(own, 0, 3, 1000, ready, 0, note(2));
  bench.send(own, 6, 4, 1000, ready, 0, note(3));
  bench.drain();
  // To a host of the switch: T = ready + (those before on its link) b G; to another switch's a hop more for each link.
  EXPECT_EQ(bench.ears[0]->arrivals, (std::vector<HeardPacket>{{ready, own, 1, 0}, {ready + each, own, 3, 0}}));
  EXPECT_EQ(bench.ears[1]->arrivals, (std::vector<HeardPacket>{{ready, own, 2, 0}}));
  EXPECT_EQ(bench.ears[6]->arrivals, (std::vector<HeardPacket>{{ready + hop * 2, own, 4, 0}}));
  // A packet has been sent when its last byte is on its link.
  EXPECT_EQ(sent, (std::vector<Time>{ready + each, ready + each, ready + each * 2, ready + each}));
  EXPECT_EQ(bench.network->delivered_bytes(), 4000);
}

TEST(Switch, NeverTakesWhatItsOwnProcessorsSend) {
  Bench bench;
  Ear& ear = bench.equip(0);
  ASSERT_TRUE(bench.network->install(0, {.match_bits = 5}).ok());
  bench.send(bench.network->rank_of_switch(0).value, 1, 1, 1000, {}, 5);
  bench.drain();
  EXPECT_TRUE(ear.arrivals.empty());
  EXPECT_EQ(bench.ears[1]->arrivals.size(), 1);
}

// Random traffic, with or without processors at all switches and rules that match none of it.
std::vector<std::vector<HeardPacket>> traffic(uint64_t seed, bool equipped) {
  Bench bench({.window = 4, .seed = seed});
  for (uint32_t at = 0; equipped && at < bench.network->switches()->switches(); ++at) {
    bench.equip(at);
    EXPECT_TRUE(bench.network->install(at, {.match_bits = 5}).ok());
  }
  Random random(seed, "sim.switch.traffic");
  for (uint64_t message = 0; message < 60; ++message) {
    const auto source = static_cast<uint32_t>(random.below(ranks));
    const auto target = static_cast<uint32_t>(random.below(ranks));
    bench.send(source, target, message, 1 + random.below(20'000), Time{static_cast<int64_t>(random.below(3'000'000))},
               4);
  }
  bench.drain();
  std::vector<std::vector<HeardPacket>> arrivals;
  for (uint32_t rank = 0; rank < bench.ears.size(); ++rank) {
    const std::vector<HeardPacket>& here = bench.ears[rank]->arrivals;
    EXPECT_TRUE(rank < ranks || here.empty()) << "switch " << rank - ranks;
    if (rank < ranks) arrivals.push_back(here);
  }
  return arrivals;
}

TEST(Switch, OtherPacketsPassAtTheSameTimes) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const auto plain = traffic(seed, false);
    EXPECT_EQ(traffic(seed, true), plain) << "seed " << seed;
  }
}

TEST(Switch, TakesTheWholeOfAMessageWhosePacketsComeOutOfOrder) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Bench bench({.window = 8, .seed = seed});
    Ear& ear = bench.equip(0);
    ASSERT_TRUE(bench.network->install(0, {.match_bits = 5}).ok());
    bench.send(0, 6, 1, 20'000, {}, 5);
    bench.send(0, 6, 2, 20'000, {}, 4);
    bench.drain();
    EXPECT_EQ(ear.arrivals.size(), 20) << "seed " << seed;
    EXPECT_EQ(bench.ears[6]->arrivals.size(), 20) << "seed " << seed;
  }
}

TEST(Switch, WhatCannotBeIsAnError) {
  Bench bench;
  const auto missing = bench.network->install(1, {});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().message, "switch 1 has no processors, so it takes no packets; equip it first");
  EXPECT_FALSE(bench.network->install(99, {}).ok());
  Bench late({.window = 8, .reorder_all = true});
  late.equip(0);
  const auto refused = late.network->install(0, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::unsupported);
  // To a switch that is no neighbour, and to one without processors: dropped with a line in the log.
  bench.equip(0);
  bench.send(bench.network->rank_of_switch(0).value, bench.network->rank_of_switch(3).value, 1, 1000);
  bench.send(0, bench.network->rank_of_switch(4).value, 2, 1000);
  bench.drain();
}

}  // namespace
}  // namespace spinloom::simulated
