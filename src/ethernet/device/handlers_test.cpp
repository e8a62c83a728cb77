// The shipped handlers against a host that answers the same questions (ethernet/port/echo_station.hpp), byte by byte.
#include "base/testing/seeds.hpp"
#include "ethernet/device/testing/card_rig.hpp"
#include "nic/packet/testing/random_frames.hpp"
#include "spinloom/arp_unit.h"
#include "spinloom/udp_forward.h"

namespace spinloom::ethernet::test {
namespace {

class Echo : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    rig.rules({"icmp", "udp:7", "arp"});
    uint32_t id = 0;
    for (const char* name : {"icmp_echo", "udp_echo", "arp_answer"}) {
      ContextSetup setup;
      setup.image = image(name, GetParam());
      setup.constants = station();
      rig.install(id++, setup);
    }
  }
  // The answer to one frame on the wire.
  FrameBytes answer(const FrameBytes& asked) {
    rig.wire.out.clear();
    rig.host.out.clear();
    rig.wire.in = {asked};
    rig.settle();
    if (rig.wire.out.size() != 1) {
      ADD_FAILURE() << rig.wire.out.size() << " answers";
      return {};
    }
    return rig.wire.out[0];
  }
  void expect_for_host(const FrameBytes& asked) {
    rig.wire.out.clear();
    rig.host.out.clear();
    rig.wire.in = {asked};
    rig.settle();
    EXPECT_TRUE(rig.wire.out.empty());
    EXPECT_EQ(rig.host.out, std::vector<FrameBytes>{asked});
  }
  Rig rig;
};

TEST_P(Echo, AnswersAreThoseOfAHost) {
  for_seeds(20, [this](Random& random) {
    const FrameBytes payload = packet::test::random_bytes(random, random.below(1460));
    const auto number = [&] { return static_cast<uint16_t>(random.next()); };
    for (const FrameBytes& asked :
         {echo_frame(ends, number(), number(), payload), udp_frame(ends, number(), 7, payload),
          arp_request_frame(ends.source_mac, {static_cast<uint32_t>(random.next())}, ends.target)}) {
      EXPECT_EQ(answer(asked), host_answer(asked));
    }
  });
  EXPECT_EQ(rig.card->nic().count(frames::Count::frames_done), 60u);
  rig.expect_quiet();
}

// All values of the words that change: the sums go around, and 0xffff and 0 are the same to them.
TEST_P(Echo, ChecksumsAreRightForEverySum) {
  for (uint32_t word = 0; word < 0x10000; word += GetParam() ? 1 : 257) {
    const FrameBytes payload{static_cast<uint8_t>(word >> 8), static_cast<uint8_t>(word)};
    const FrameBytes asked = echo_frame(ends, 0, 0, payload);
    ASSERT_EQ(answer(asked), host_answer(asked)) << word;
  }
}

TEST_P(Echo, ADatagramWithoutAChecksumComesBackWithoutOne) {
  FrameBytes asked = udp_frame(ends, 1234, 7, FrameBytes(33, 5));
  asked[14 + 20 + 6] = asked[14 + 20 + 7] = 0;
  EXPECT_EQ(answer(asked), host_answer(asked));
}

// The host would drop it; the NIC's answer shows the damage to who sent it.
TEST_P(Echo, ADamagedPayloadComesBackDamaged) {
  FrameBytes asked = echo_frame(ends, 1, 2, FrameBytes(64, 3));
  asked.back() ^= 1;
  const FrameBytes answered = answer(asked);
  const auto ip = packet::read_ipv4(packet::read_ethernet(answered)->payload);
  ASSERT_TRUE(ip.ok());
  EXPECT_NE(packet::checksum(ip->payload), 0);
}

TEST_P(Echo, WhatIsNotForThemGoesToTheHost) {
  packet::Endpoints others = ends;
  others.target.value += 1;
  expect_for_host(echo_frame(others, 1, 1, FrameBytes(30)));
  expect_for_host(udp_frame(others, 1, 7, FrameBytes(30)));
  expect_for_host(arp_request_frame(ends.source_mac, ends.source, others.target));
  expect_for_host(udp_frame(ends, 7, 8, FrameBytes(30)));
  packet::Endpoints group = ends;
  group.target_mac = packet::broadcast;
  expect_for_host(echo_frame(group, 1, 1, FrameBytes(30)));
  FrameBytes reply = echo_frame(ends, 1, 1, FrameBytes(30));
  reply[14 + 20] = 0;
  expect_for_host(reply);
  FrameBytes fragment = echo_frame(ends, 1, 1, FrameBytes(30));
  fragment[14 + 6] |= 0x20;
  expect_for_host(fragment);
  FrameBytes options = echo_frame(ends, 1, 1, FrameBytes(30));
  options[14] = 0x46;
  expect_for_host(options);
  FrameBytes arp_reply = arp_request_frame(ends.source_mac, ends.source, ends.target);
  arp_reply[14 + 7] = 2;
  expect_for_host(arp_reply);
}

// Frames cut off anywhere, and frames whose length says more than there is.
TEST_P(Echo, ShortFramesGoToTheHost) {
  const FrameBytes asked = echo_frame(ends, 1, 1, FrameBytes(100));
  for (size_t length = 14; length < asked.size(); ++length) {
    expect_for_host(FrameBytes(asked.begin(), asked.begin() + static_cast<ptrdiff_t>(length)));
  }
  const FrameBytes arp = arp_request_frame(ends.source_mac, ends.source, ends.target);
  for (size_t length = 14; length < 42; ++length) {
    expect_for_host(FrameBytes(arp.begin(), arp.begin() + static_cast<ptrdiff_t>(length)));
  }
}

class Unit : public ::testing::TestWithParam<bool> {};

// The first datagram finds no Ethernet address, so the unit asks the wire; when its answer has been here, others go on.
// Rules: FPS-67.
TEST_P(Unit, AForwarderAsksTheProtocolUnitOfArp) {
  Rig rig;
  rig.rules({"arp", "udp:7000"});
  ContextSetup unit;
  unit.image = image("arp_unit", GetParam());
  unit.constants = station();
  unit.state_bytes = sizeof(spl_arp_state);
  rig.install(0, unit);
  const packet::Ipv4Address far{0x0a000063};
  const packet::MacAddress far_mac{{2, 0, 0, 0, 0, 0x63}};
  spl_forward forward{};
  forward.ip = spl_net32(ends.target.value);
  forward.to_ip = spl_net32(far.value);
  forward.to_port = spl_net16(9000);
  ContextSetup forwarder;
  forwarder.image = image("udp_forward", GetParam());
  forwarder.constants.resize(sizeof forward);
  std::memcpy(forwarder.constants.data(), &forward, sizeof forward);
  forwarder.state_bytes = sizeof(spl_forward_state);
  rig.install(1, forwarder);

  const auto pass = [&](const FrameBytes& frame) {
    rig.wire.out.clear();
    rig.wire.in = {frame};
    rig.settle();
    return rig.wire.out;
  };
  const FrameBytes datagram = udp_frame(ends, 4000, 7000, FrameBytes(100, 5));
  const auto asks = pass(datagram);
  ASSERT_EQ(asks.size(), 1u);
  EXPECT_EQ(asks[0], arp_request_frame(ends.target_mac, ends.target, far));
  EXPECT_EQ(pass(datagram).size(), 1u) << "no answer yet: it asks again";

  FrameBytes answer(60);
  answer.resize(port::EchoStation(far_mac, far).answer(asks[0], answer));
  EXPECT_TRUE(pass(answer).empty());
  EXPECT_TRUE(rig.host.out.empty()) << "the answer was for the unit";
  const packet::Endpoints onwards{ends.target_mac, far_mac, ends.target, far};
  FrameBytes wanted = udp_frame(onwards, 4000, 9000, FrameBytes(100, 5));
  const auto forwarded = pass(datagram);
  ASSERT_EQ(forwarded.size(), 1u);
  for (const size_t field : {22, 24, 25, 40, 41}) wanted[field] = forwarded[0][field];  // time to live, checksums
  EXPECT_EQ(forwarded[0], wanted);
  EXPECT_TRUE(packet::read_ipv4(packet::read_ethernet(forwarded[0])->payload).ok()) << "its checksum is right";

  EXPECT_EQ(pass(arp_request_frame(ends.source_mac, ends.source, ends.target)).size(), 1u) << "it answers, too";
  EXPECT_TRUE(pass(answer).empty());
  EXPECT_EQ(rig.host.out, std::vector<FrameBytes>{answer}) << "nobody had asked: it is the host's";
  spl_forward_state state;
  std::memcpy(&state, rig.card->state(ContextId{1}).data(), sizeof state);
  EXPECT_EQ(state.forwarded, 1u);
  EXPECT_EQ(state.dropped, 2u);
  EXPECT_EQ(rig.card->nic().count(frames::Count::mails), 3u) << "two questions, one answer";
  EXPECT_EQ(rig.card->nic().count(frames::Count::mails_refused), 0u);
  rig.expect_quiet();
}

INSTANTIATE_TEST_SUITE_P(Runs, Unit, ::testing::Values(true, false),
                         [](const auto& info) { return info.param ? "Native" : "Sandbox"; });
INSTANTIATE_TEST_SUITE_P(Runs, Echo, ::testing::Values(true, false),
                         [](const auto& info) { return info.param ? "Native" : "Sandbox"; });

}  // namespace
}  // namespace spinloom::ethernet::test
