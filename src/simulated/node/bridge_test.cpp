// The times of packets through gateways, by the algebra of bridge.hpp: L = switch + wire, G = byte_time, f = forward.
#include "simulated/node/bridge.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "simulated/node/testing/profile.hpp"

namespace spinloom::simulated {
namespace {

constexpr uint64_t packet_bytes = 2048;

struct BridgedPacket {
  uint64_t message = 0;
  uint64_t offset = 0;
  Time first;
  Time last;
};

class Noting final : public Receiver {
 public:
  explicit Noting(const EventQueue& events) : events_(events) {}
  void on_arrival(std::unique_ptr<Arrival> arrival) override {
    const nic::Packet& packet = arrival->packet;
    arrivals.push_back({packet.message, packet.offset, events_.now(), arrival->last_byte});
    EXPECT_EQ(arrival->bytes, std::vector<uint8_t>(packet.payload.length, static_cast<uint8_t>(packet.message)));
  }
  std::vector<BridgedPacket> arrivals;

 private:
  const EventQueue& events_;
};

// Ranks 0 and 1 are in one fabric, 2 and 3 in another.
class BridgeTimes : public testing::Test {
 protected:
  void build(const BridgeConfig& config) {
    ranks_.clear();
    events_ = std::make_unique<EventQueue>();
    config_ = config;
    config_.fabric = {0, 0, 1, 1};
    ASSERT_TRUE(Bridge::check(config_, 4).ok());
    network_ = std::make_unique<Network>(*events_, profile_, Ordering{}, Network::Switches{}, config_);
    for (uint32_t rank = 0; rank < 4; ++rank) {
      ranks_.push_back(std::make_unique<Noting>(*events_));
      network_->attach(nic::Rank{rank}, *ranks_.back());
    }
  }
  // A message of `bytes`, of which `left_out` never leave the sender; its letters are its number.
  void send(uint32_t source, uint32_t target, uint64_t message, uint64_t bytes, uint64_t left_out = 0) {
    memory_.emplace_back(bytes, static_cast<uint8_t>(message));
    std::vector<nic::Packet> packets;
    for (uint64_t at = 0; at == 0 || at < bytes - left_out; at += packet_bytes) {
      nic::Packet& packet = packets.emplace_back();
      packet.source = nic::Rank{source};
      packet.target = nic::Rank{target};
      packet.message = message;
      packet.message_length = bytes;
      packet.offset = at;
      packet.payload.bytes = memory_.back().data() + at;
      packet.payload.length = std::min(packet_bytes, bytes - left_out - at);
    }
    network_->inject(nic::Rank{source}, std::move(packets), events_->now(), [] {});
  }
  const std::vector<BridgedPacket>& run(uint32_t target) {
    while (events_->step()) {
    }
    return ranks_[target]->arrivals;
  }
  [[nodiscard]] Time on_wire(uint64_t bytes) const {
    return profile_.link.byte_time.time_of(Bytes{static_cast<int64_t>(bytes)});
  }
  [[nodiscard]] Time latency() const { return profile_.link.switch_latency + profile_.link.wire; }  // L

  Profile profile_ = test_profile();
  std::unique_ptr<EventQueue> events_;
  BridgeConfig config_;
  std::unique_ptr<Network> network_;
  std::vector<std::unique_ptr<Noting>> ranks_;
  std::deque<std::vector<uint8_t>> memory_;
};

TEST_F(BridgeTimes, InsideAFabricNothingChanges) {
  build({.forward = 500'000_ps});
  send(0, 1, 1, packet_bytes);
  const auto& arrivals = run(1);
  ASSERT_EQ(arrivals.size(), 1u);
  EXPECT_EQ(arrivals[0].first, latency());
  EXPECT_EQ(network_->bridge()->statistics().packets, 0u);
}

TEST_F(BridgeTimes, CutThroughCostsALatencyAndTheGatewaysTimeWhateverTheLength) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{8}, packet_bytes}) {
    build({.forward = 500'000_ps});
    send(0, 2, 1, bytes);
    const auto& arrivals = run(2);
    ASSERT_EQ(arrivals.size(), 1u);
    EXPECT_EQ(arrivals[0].first, latency() * 2 + 500'000_ps);
    EXPECT_EQ(arrivals[0].last, latency() * 2 + 500'000_ps + on_wire(bytes));
  }
}

TEST_F(BridgeTimes, AStreamIsAsFastAsTheSlowerOfLinkAndProcessor) {
  constexpr int64_t packets = 10;
  for (const Time forward : {10'000_ps, 500'000_ps}) {
    build({.forward = forward});
    send(0, 2, 1, packets * packet_bytes);
    const auto& arrivals = run(2);
    ASSERT_EQ(arrivals.size(), 10u);
    const Time each = std::max(on_wire(packet_bytes), forward);
    EXPECT_EQ(arrivals.back().first, latency() * 2 + forward + each * (packets - 1)) << forward;
    EXPECT_EQ(network_->bridge()->statistics().busy, forward * packets);
  }
}

TEST_F(BridgeTimes, StoringAddsTheWholeMessageOnTheWire) {
  constexpr int64_t packets = 10;
  build({.stores = true, .forward = 10'000_ps});
  send(0, 2, 1, packets * packet_bytes);
  const auto& arrivals = run(2);
  ASSERT_EQ(arrivals.size(), 10u);
  EXPECT_EQ(arrivals.front().first, latency() * 2 + 10'000_ps + on_wire(packet_bytes) * packets);
  EXPECT_EQ(arrivals.back().last, latency() * 2 + 10'000_ps + on_wire(packet_bytes) * (2 * packets));
  EXPECT_EQ(network_->bridge()->statistics().held_bytes_peak, packets * packet_bytes);
}

TEST_F(BridgeTimes, StoredMessagesOfAPairKeepTheirOrder) {
  build({.stores = true});
  send(0, 2, 1, 8 * packet_bytes);
  send(0, 2, 2, 0);
  send(1, 2, 3, 0);  // another pair waits for nobody
  const auto& arrivals = run(2);
  ASSERT_EQ(arrivals.size(), 10u);
  EXPECT_EQ(arrivals.front().message, 3u);
  for (size_t i = 1; i < 9; ++i) EXPECT_EQ(arrivals[i].message, 1u);
  EXPECT_EQ(arrivals.back().message, 2u);
}

// Its sender may wait for something that comes behind it.
TEST_F(BridgeTimes, AMessageThatStaysIncompleteIsPassedOnAfterAWhile) {
  build({.stores = true, .hold_max = 5'000'000_ps});
  send(0, 2, 1, 3 * packet_bytes, packet_bytes);
  send(0, 2, 2, 8);
  const auto& arrivals = run(2);
  ASSERT_EQ(arrivals.size(), 3u);
  const Time there = latency() + on_wire(packet_bytes);  // the first packet is at the gateway
  EXPECT_EQ(arrivals[0].first, there + 5'000'000_ps + latency());
  EXPECT_EQ(arrivals[1].offset, packet_bytes);
  EXPECT_EQ(arrivals[2].message, 2u);
}

TEST_F(BridgeTimes, SeveralGatewaysShareThePairs) {
  // 0 to 2 and 1 to 3 have the sums 2 and 4, 0 to 3 and 1 to 2 the sum 3.
  for (const uint32_t gateways : {1u, 2u}) {
    build({.gateways = gateways, .forward = 1'000'000_ps});
    send(0, 2, 1, 8);
    send(1, 2, 2, 8);
    const auto& arrivals = run(2);
    ASSERT_EQ(arrivals.size(), 2u);
    const Time apart = arrivals[1].first - arrivals[0].first;
    EXPECT_EQ(apart, gateways == 1 ? 1'000'000_ps : on_wire(8)) << gateways;
  }
}

TEST(BridgeConfigTest, WhatMakesNoSenseIsRefused) {
  EXPECT_FALSE(Bridge::check({.fabric = {0, 1}}, 3).ok());
  EXPECT_FALSE(Bridge::check({.fabric = {0, 1}, .gateways = 0}, 2).ok());
  EXPECT_FALSE(Bridge::check({.fabric = {0, 1}, .forward = Time{-1}}, 2).ok());
  EXPECT_TRUE(Bridge::check({.fabric = {0, 1}}, 2).ok());
}

}  // namespace
}  // namespace spinloom::simulated
