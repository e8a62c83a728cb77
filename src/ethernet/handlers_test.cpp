// The shipped handlers against a host that answers the same questions (port/echo_station.hpp), byte by byte.
#include "base/test_seeds.hpp"
#include "ethernet/test_support.hpp"
#include "packet/test_support.hpp"

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
  EXPECT_EQ(rig.card->nic().count(frame::Count::frames_done), 60u);
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
  packet::Ends others = ends;
  others.target.value += 1;
  expect_for_host(echo_frame(others, 1, 1, FrameBytes(30)));
  expect_for_host(udp_frame(others, 1, 7, FrameBytes(30)));
  expect_for_host(arp_request_frame(ends.source_mac, ends.source, others.target));
  expect_for_host(udp_frame(ends, 7, 8, FrameBytes(30)));
  packet::Ends group = ends;
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

INSTANTIATE_TEST_SUITE_P(Runs, Echo, ::testing::Values(true, false),
                         [](const auto& info) { return info.param ? "Native" : "Sandbox"; });

}  // namespace
}  // namespace spinloom::ethernet::test
