// Ports on a virtual link in a namespace of the test's own: frames go over as they are, and the kernel keeps quiet.
#include <gtest/gtest.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

#include "base/test_patience.hpp"
#include "base/test_seeds.hpp"
#include "packet/test_support.hpp"
#include "port/echo_station.hpp"
#include "port/interface.hpp"
#include "port/namespace_support.hpp"
#include "port/open.hpp"

namespace spinloom::port {
namespace {

using packet::FrameBytes;

// Waits until the port has something, or the patience ends.
bool wait_for(FramePort& port, int limit_ms) {
  pollfd place{port.descriptor(), POLLIN, 0};
  return poll(&place, 1, limit_ms) > 0;
}

int limit_ms() { return static_cast<int>(std::chrono::milliseconds(patient(std::chrono::seconds(20))).count()); }

// The next `count` frames of a type that only our tests use.
std::vector<FrameBytes> take(FramePort& port, size_t count) {
  std::vector<FrameBytes> out;
  std::array<Bytes, 32> batch;
  while (out.size() < count) {
    const auto came = port.receive(batch);
    EXPECT_TRUE(came.ok()) << came.error().message;
    if (!came || (*came == 0 && !wait_for(port, limit_ms()))) break;
    for (const Bytes frame : std::span(batch).first(*came)) {
      const auto ethernet = packet::read_ethernet(frame);
      if (ethernet.ok() && ethernet->type == 0x88b5) out.emplace_back(frame.begin(), frame.end());
    }
  }
  return out;
}

FrameBytes experimental(Random& random, const packet::MacAddress& target, uint8_t tags) {
  packet::Ethernet header = packet::test::random_ethernet(random, 0x88b5);
  header.target = target;
  header.source.bytes[0] = 2;
  header.tag_count = tags;
  for (packet::VlanTag& tag : header.tags) tag = {packet::ether_type::vlan, static_cast<uint16_t>(random.next())};
  return packet::ethernet_frame(header, packet::test::random_bytes(random, 46 + random.below(1400)));
}

void send_all(FramePort& port, const std::vector<FrameBytes>& frames) {
  const std::vector<Bytes> all(frames.begin(), frames.end());
  for (size_t sent = 0; sent < all.size();) {
    const auto some = port.send(std::span(all).subspan(sent));
    ASSERT_TRUE(some.ok()) << some.error().message;
    sent += *some;
    pollfd place{port.descriptor(), POLLOUT, 0};
    if (*some == 0) {
      ASSERT_GT(poll(&place, 1, limit_ms()), 0) << "never ready to send";
    }
  }
}

class Veth : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const std::string& reason = test::enter_namespace(); !reason.empty()) GTEST_SKIP() << reason;
    if (!test::make_pair()) GTEST_SKIP() << "this kernel has no veth pairs";
    host_ = opened("packet:host0");
    nic_ = opened(text(GetParam(), ":nic0"));
    if (nic_ == nullptr) GTEST_SKIP() << GetParam() << " is refused here: " << refusal_;
    ASSERT_NE(host_, nullptr) << refusal_;
  }

  PortPointer opened(const std::string& text) {
    auto port = open_port(text);
    if (port) return std::move(*port);
    refusal_ = port.error().message;
    return nullptr;
  }

  PortPointer host_;
  PortPointer nic_;
  std::string refusal_;
};

TEST_P(Veth, FramesGoOverAsTheyAre) {
  for_seeds(3, [this](Random& random) {
    for (const auto& [from, to] : {std::pair(host_.get(), nic_.get()), std::pair(nic_.get(), host_.get())}) {
      std::vector<FrameBytes> frames;
      for (int i = 0; i < 300; ++i) frames.push_back(experimental(random, to->mac(), 0));
      const Counters sent = from->counters();
      const Counters before = to->counters();
      send_all(*from, frames);
      EXPECT_EQ(take(*to, frames.size()), frames);
      EXPECT_EQ(from->counters().sent - sent.sent, frames.size());
      EXPECT_GE(to->counters().received - before.received, frames.size());
      EXPECT_EQ(to->counters().truncated, 0U);
    }
  });
}

// Rings have a few thousand places: twice around.
TEST_P(Veth, RingsGoAround) {
  Random random(1);
  std::vector<FrameBytes> frames;
  for (int i = 0; i < 200; ++i) frames.push_back(experimental(random, nic_->mac(), 0));
  for (int round = 0; round < 50; ++round) {
    send_all(*host_, frames);
    ASSERT_EQ(take(*nic_, frames.size()), frames) << "round " << round;
    send_all(*nic_, frames);
    ASSERT_EQ(take(*host_, frames.size()), frames) << "round " << round;
  }
}

TEST_P(Veth, TagsStayInTheirFrames) {
  Random random(2);
  const std::vector<FrameBytes> frames{experimental(random, nic_->mac(), 1), experimental(random, nic_->mac(), 2)};
  send_all(*host_, frames);
  EXPECT_EQ(take(*nic_, frames.size()), frames);
}

TEST_P(Veth, FramesForOthersComeToo) {
  Random random(3);
  packet::MacAddress other{{2, 9, 9, 9, 9, 9}};
  const std::vector<FrameBytes> frames{experimental(random, other, 0), experimental(random, packet::broadcast, 0)};
  send_all(*host_, frames);
  EXPECT_EQ(take(*nic_, frames.size()), frames);
}

TEST_P(Veth, AFrameThatIsTooLongIsRefusedAndTheLongestGoesOver) {
  ASSERT_EQ(nic_->mtu(), 1500U);
  const std::array<Bytes, 1> none{};
  const FrameBytes longer(1519, 1);
  EXPECT_FALSE(nic_->send(std::array{Bytes(longer)}).ok());
  EXPECT_FALSE(nic_->send(none).ok());
  for (const auto& [from, to] : {std::pair(host_.get(), nic_.get()), std::pair(nic_.get(), host_.get())}) {
    packet::Ethernet header;
    header.target = to->mac();
    header.source = from->mac();
    header.type = 0x88b5;
    const std::vector<FrameBytes> frames{packet::ethernet_frame(header, FrameBytes(1500, 7))};
    send_all(*from, frames);
    EXPECT_EQ(take(*to, 1), frames);
  }
}

// Frames that came = received + dropped + truncated: nobody receives while more come than there is room for.
TEST_P(Veth, WhatThereIsNoRoomForIsCounted) {
  Random random(5);
  const std::vector<FrameBytes> frames(500, experimental(random, nic_->mac(), 0));
  uint64_t sent = 0;
  for (int i = 0; i < 20; ++i, sent += frames.size()) send_all(*host_, frames);
  uint64_t received = 0;
  std::array<Bytes, 64> batch;
  for (auto came = nic_->receive(batch); came.ok() && *came > 0; came = nic_->receive(batch)) received += *came;
  const Counters counters = nic_->counters();
  EXPECT_EQ(counters.received, received);
  EXPECT_GT(counters.dropped, 0U);
  EXPECT_EQ(counters.received + counters.dropped, sent);
  EXPECT_EQ(counters.truncated, 0U);
  // And it goes on.
  const std::vector<FrameBytes> later{experimental(random, nic_->mac(), 0)};
  send_all(*host_, later);
  EXPECT_EQ(take(*nic_, 1), later);
}

TEST_P(Veth, NothingIsLeftToHardwareAtEitherEnd) {
  for (const char* const name : {"nic0", "host0"}) {
    const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{};
    std::strcpy(request.ifr_name, name);
    for (const uint32_t command : {ETHTOOL_GTXCSUM, ETHTOOL_GTSO, ETHTOOL_GGSO, ETHTOOL_GGRO}) {
      ethtool_value setting{command, 1};
      request.ifr_data = reinterpret_cast<char*>(&setting);
      ASSERT_EQ(ioctl(socket.number(), SIOCETHTOOL, &request), 0);
      EXPECT_EQ(setting.data, 0U) << name << " command " << command;
    }
  }
}

// The kernel has no address on nic0, but it has one on another interface, and Linux answers for any of its addresses.
TEST_P(Veth, TheKernelDoesNotAnswer) {
  if (!test::run("ip address add 10.9.0.2/32 dev lo")) GTEST_SKIP() << "no address can be set";
  Random random(4);
  const packet::Ends ends{host_->mac(), nic_->mac(), {0x0a090001}, {0x0a090002}};
  const std::vector<FrameBytes> asked{packet::arp_request_frame(ends.source_mac, ends.source, ends.target)};
  send_all(*host_, asked);
  // The NIC sends a frame after it has seen the question; what the kernel answered would have come before.
  std::array<Bytes, 32> batch;
  for (bool seen = false; !seen;) {
    const auto came = nic_->receive(batch);
    ASSERT_TRUE(came.ok());
    for (const Bytes frame : std::span(batch).first(*came)) seen = seen || packet::read_ethernet(frame)->type == 0x0806;
    if (*came == 0) {
      ASSERT_TRUE(wait_for(*nic_, limit_ms())) << "the question did not come";
    }
  }
  send_all(*nic_, {experimental(random, host_->mac(), 0)});
  for (bool ended = false; !ended;) {
    const auto came = host_->receive(batch);
    ASSERT_TRUE(came.ok());
    for (const Bytes frame : std::span(batch).first(*came)) {
      ended = ended || packet::read_ethernet(frame)->type == 0x88b5;
      EXPECT_NE(packet::read_ethernet(frame)->type, packet::ether_type::arp) << packet::describe(frame);
    }
    if (*came == 0) {
      ASSERT_TRUE(wait_for(*host_, limit_ms()));
    }
  }
  test::run("ip address delete 10.9.0.2/32 dev lo");
}

TEST_P(Veth, AnInterfaceThatGoesAwayIsAnError) {
  ASSERT_TRUE(test::run("ip link delete nic0"));
  std::array<Bytes, 4> batch;
  auto came = nic_->receive(batch);
  for (int i = 0; i < 100 && came.ok(); ++i) {
    wait_for(*nic_, 20);
    came = nic_->receive(batch);
  }
  ASSERT_FALSE(came.ok());
  EXPECT_NE(came.error().message.find("nic0"), std::string::npos) << came.error().message;
}

TEST_P(Veth, AnInterfaceWithAnAddressIsRefused) {
  nic_.reset();
  ASSERT_TRUE(test::run("ip address add 10.8.0.1/24 dev nic0"));
  EXPECT_EQ(opened(text(GetParam(), ":nic0")), nullptr);
  EXPECT_NE(refusal_.find("10.8.0.1"), std::string::npos) << refusal_;
  EXPECT_NE(refusal_.find("ip address flush dev nic0"), std::string::npos) << refusal_;
}

TEST_P(Veth, JumboFramesGoThroughPacketSockets) {
  nic_.reset();
  host_.reset();
  ASSERT_TRUE(test::run("ip link set nic0 mtu 9000 && ip link set host0 mtu 9000"));
  nic_ = opened(text(GetParam(), ":nic0"));
  if (std::string_view(GetParam()) == "xdp") {
    EXPECT_EQ(nic_, nullptr);
    EXPECT_NE(refusal_.find("MTU of 9000"), std::string::npos) << refusal_;
    EXPECT_NE(refusal_.find("use packet:nic0"), std::string::npos) << refusal_;
    return;
  }
  host_ = opened("packet:host0");
  ASSERT_TRUE(nic_ != nullptr && host_ != nullptr) << refusal_;
  packet::Ethernet header;
  header.target = nic_->mac();
  header.source = host_->mac();
  header.type = 0x88b5;
  const std::vector<FrameBytes> frames(5, packet::ethernet_frame(header, FrameBytes(9000, 7)));
  send_all(*host_, frames);
  EXPECT_EQ(take(*nic_, frames.size()), frames);
}

INSTANTIATE_TEST_SUITE_P(By, Veth, ::testing::Values("packet", "xdp"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Tap, TheKernelIsThePeer) {
  if (const std::string& reason = test::enter_namespace(); !reason.empty()) GTEST_SKIP() << reason;
  auto port = open_port("tap:tap0,10.7.0.1/24");
  if (!port) GTEST_SKIP() << port.error().message;
  // The kernel answers us, and we see its frames whole.
  const packet::Ends ends{(*port)->mac(), packet::broadcast, {0x0a070002}, {0x0a070001}};
  send_all(**port, {packet::arp_request_frame(ends.source_mac, ends.source, ends.target)});
  std::array<Bytes, 8> batch;
  for (bool answered = false; !answered;) {
    const auto came = (*port)->receive(batch);
    ASSERT_TRUE(came.ok()) << came.error().message;
    for (const Bytes frame : std::span(batch).first(*came)) {
      const auto arp = packet::read_arp(packet::read_ethernet(frame)->payload);
      answered = answered || (arp.ok() && arp->operation == packet::arp_operation::reply && arp->sender == ends.target);
    }
    if (*came == 0) {
      ASSERT_TRUE(wait_for(**port, limit_ms())) << "no answer";
    }
  }
  EXPECT_EQ((*port)->counters().sent, 1U);
  EXPECT_GE((*port)->counters().received, 1U);
  const auto second = open_port("tap:tap0");
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find("used by another process"), std::string::npos) << second.error().message;
  EXPECT_FALSE(open_port("tap:tap1,10.7.0.1/33").ok());
}

}  // namespace
}  // namespace spinloom::port
