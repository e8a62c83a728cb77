// Frames inside the packets of a link: whole, in parts that come in any order, and what is no frame.
#include "live/bridge/bridge_links.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "live/node/testing/listener.hpp"

namespace spinloom::live {
namespace {

// Keeps what it is given to send.
class Keeping final : public Transport {
 public:
  [[nodiscard]] const char* name() const override { return "keeping"; }
  [[nodiscard]] bool send(nic::Send& one) override {
    packet = one.packet;
    at_once = one.at_once;
    bytes.assign(packet.payload.bytes, packet.payload.bytes + packet.payload.length);
    packet.payload.bytes = bytes.data();
    return true;
  }
  bool poll() override { return false; }
  [[nodiscard]] bool has_news() const override { return false; }
  void return_loan(nic::Rank, uint64_t) override {}
  void set_stopped(nic::Rank, bool) override {}
  [[nodiscard]] Status fetch(nic::Rank, uint64_t, uint8_t*, uint64_t) override { return fail(Code::invalid, "none"); }
  [[nodiscard]] bool congested(nic::Rank) const override { return false; }
  [[nodiscard]] bool drained() const override { return true; }
  [[nodiscard]] Outstanding outstanding(nic::Rank) const override { return {}; }
  [[nodiscard]] std::string describe(nic::Rank) override { return "none"; }
  void say_goodbye() override {}

  nic::Packet packet;
  std::vector<uint8_t> bytes;
  bool at_once = false;
};

std::vector<uint8_t> copy_of(std::span<const uint8_t> bytes) { return {bytes.begin(), bytes.end()}; }

nic::Packet part_of(const nic::Packet& whole, uint64_t from, uint64_t length) {
  nic::Packet part = whole;
  part.offset = from;
  part.payload.bytes += from;
  part.payload.length = length;
  return part;
}

TEST(BridgeLinks, CarryAFrameAsAnAnswer) {
  Keeping link;
  BridgeLinks from(3, 5);
  EXPECT_FALSE(from.pass(nic::Rank{4}, some(10, 1)));  // no link
  from.link(nic::Rank{4}, link);
  const std::vector<uint8_t> frame = some(1000, 2);
  ASSERT_TRUE(from.pass(nic::Rank{4}, frame));
  EXPECT_TRUE(link.packet.is_answer());
  EXPECT_TRUE(link.at_once);  // the frame's memory is used again
  EXPECT_EQ(link.packet.source, nic::Rank{3});
  EXPECT_EQ(link.packet.target, nic::Rank{4});
  ASSERT_TRUE(BridgeLinks::is_carrier(link.packet));
  BridgeLinks to(4, 5);
  const auto got = to.collect(link.packet);
  ASSERT_TRUE(got);
  EXPECT_EQ(copy_of(*got), frame);
  nic::Packet other = link.packet;
  other.answers = 7;
  EXPECT_FALSE(BridgeLinks::is_carrier(other));
  other = link.packet;
  other.operation = nic::Operation::put;
  EXPECT_FALSE(BridgeLinks::is_carrier(other));
}

TEST(BridgeLinks, PutPartsTogetherInAnyOrder) {
  Keeping link;
  BridgeLinks from(3, 5), to(4, 5);
  from.link(nic::Rank{4}, link);
  std::vector<uint64_t> places{0, 300, 600, 900};
  do {
    const std::vector<uint8_t> frame = some(1000, 3);
    ASSERT_TRUE(from.pass(nic::Rank{4}, frame));
    for (size_t i = 0; i < places.size(); ++i) {
      const auto got = to.collect(part_of(link.packet, places[i], std::min<uint64_t>(300, 1000 - places[i])));
      ASSERT_EQ(got.has_value(), i + 1 == places.size());
      if (got) {
        EXPECT_EQ(copy_of(*got), frame);
      }
    }
  } while (std::next_permutation(places.begin(), places.end()));
}

TEST(BridgeLinks, OneNeighbourUsesUpNobodyElsesRoom) {
  Keeping link;
  BridgeLinks from(3, 5), to(4, 5);
  from.link(nic::Rank{4}, link);
  ASSERT_TRUE(from.pass(nic::Rank{4}, some(1000, 4)));
  for (uint64_t message = 0; message < 2 * BridgeLinks::incomplete_max; ++message) {
    nic::Packet part = part_of(link.packet, 0, 100);
    part.message = message;
    part.source = nic::Rank{2};
    EXPECT_FALSE(to.collect(part));
  }
  EXPECT_FALSE(to.collect(part_of(link.packet, 0, 500)));
  EXPECT_TRUE(to.collect(part_of(link.packet, 500, 500)));
}

TEST(BridgeLinks, WhatIsNoFrameIsRefused) {
  Keeping link;
  BridgeLinks from(3, 5), to(4, 5);
  from.link(nic::Rank{4}, link);
  ASSERT_TRUE(from.pass(nic::Rank{4}, some(1000, 5)));
  nic::Packet bad = part_of(link.packet, 900, 200);  // the part lies beyond the end
  EXPECT_FALSE(to.collect(bad));
  bad = link.packet;
  bad.message_length = BridgeLinks::frame_bytes_max + 1;
  EXPECT_FALSE(to.collect(bad));
  bad = link.packet;
  bad.payload.space = nic::PayloadRef::Space::peer;
  EXPECT_FALSE(to.collect(bad));
  bad = part_of(link.packet, 0, 500);
  bad.source = nic::Rank{99};
  EXPECT_FALSE(to.collect(bad));
  EXPECT_FALSE(to.collect(part_of(link.packet, 0, 500)));
  bad = part_of(link.packet, 500, 100);
  bad.message_length = 700;  // the same message with another length
  EXPECT_FALSE(to.collect(bad));
  EXPECT_TRUE(to.collect(part_of(link.packet, 500, 500)));
}

}  // namespace
}  // namespace spinloom::live
