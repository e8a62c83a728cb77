// A NIC owns its wire: the kernel at the NIC's end keeps quiet, and nothing is left to hardware. A TAP device is the
// other way round: the kernel is the peer.
#include <gtest/gtest.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <fstream>

#include "ethernet/port/descriptor.hpp"
#include "ethernet/port/testing/pair_testbed.hpp"

namespace spinloom::port {
namespace {

using namespace test;

class Owned : public PairTest {};

TEST_P(Owned, NothingIsLeftToHardwareAtEitherEnd) {
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

// The settings that claim_interface() may change, as text: features, the flag for ARP, and values in /proc.
std::string state_of(const std::string& name) {
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  struct {
    uint32_t command = ETHTOOL_GFEATURES;
    uint32_t size = 8;
    std::array<ethtool_get_features_block, 8> blocks{};
  } features;
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(&features);
  EXPECT_EQ(ioctl(socket.number(), SIOCETHTOOL, &request), 0);
  EXPECT_EQ(ioctl(socket.number(), SIOCGIFFLAGS, &request), 0);
  std::string out = text(name, " no ARP ", (request.ifr_flags & IFF_NOARP) != 0);
  for (const auto& block : features.blocks) out += text(std::hex, " ", block.requested, " ", block.active);
  for (const char* const path : {"/proc/sys/net/ipv6/conf/%/disable_ipv6", "/proc/sys/net/ipv4/conf/%/forwarding"}) {
    std::string word;
    std::ifstream(std::string(path).replace(std::string_view(path).find('%'), 1, name)) >> word;
    out += " " + word;
  }
  return out;
}

TEST_P(Owned, WhatWasChangedIsPutBack) {
  nic_.reset();
  host_.reset();
  ASSERT_TRUE(make_pair());
  ASSERT_TRUE(put("/proc/sys/net/ipv4/conf/nic0/forwarding", "1"));
  const std::string before = state_of("nic0") + "; " + state_of("host0");
  nic_ = opened(text(GetParam(), ":nic0"));
  ASSERT_NE(nic_, nullptr) << refusal_;
  EXPECT_NE(state_of("nic0") + "; " + state_of("host0"), before);
  nic_.reset();
  EXPECT_EQ(state_of("nic0") + "; " + state_of("host0"), before);
}

// The kernel has no address on nic0, but it has one on another interface, and Linux answers for any of its addresses.
TEST_P(Owned, TheKernelDoesNotAnswer) {
  if (!run("ip address add 10.9.0.2/32 dev lo")) GTEST_SKIP() << "no address can be set";
  Random random(4);
  const packet::Endpoints ends{host_->mac(), nic_->mac(), {0x0a090001}, {0x0a090002}};
  const std::vector<FrameBytes> asked{packet::arp_request_frame(ends.source_mac, ends.source, ends.target)};
  must_send(*host_, asked);
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
  must_send(*nic_, {experimental(random, host_->mac(), 0)});
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
  run("ip address delete 10.9.0.2/32 dev lo");
}

TEST_P(Owned, AnInterfaceWithAnAddressIsRefused) {
  nic_.reset();
  ASSERT_TRUE(run("ip address add 10.8.0.1/24 dev nic0"));
  EXPECT_EQ(opened(text(GetParam(), ":nic0")), nullptr);
  EXPECT_NE(refusal_.find("10.8.0.1"), std::string::npos) << refusal_;
  EXPECT_NE(refusal_.find("ip address flush dev nic0"), std::string::npos) << refusal_;
}

TEST_P(Owned, AnInterfaceIsTheWireOfOneNic) {
  for (const char* const kind : {"packet", "xdp"}) {
    EXPECT_EQ(opened(text(kind, ":nic0")), nullptr);
    EXPECT_NE(refusal_.find("another NIC has the interface nic0"), std::string::npos) << refusal_;
    EXPECT_NE(refusal_.find(text("(process ", getpid(), " of user ", geteuid(), ")")), std::string::npos) << refusal_;
  }
  nic_.reset();
  EXPECT_NE(opened("packet:nic0"), nullptr) << refusal_;
}

TEST_P(Owned, JumboFramesGoThroughPacketSockets) {
  nic_.reset();
  host_.reset();
  ASSERT_TRUE(run("ip link set nic0 mtu 9000 && ip link set host0 mtu 9000"));
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
  must_send(*host_, frames);
  EXPECT_EQ(take(*nic_, frames.size()), frames);
}

INSTANTIATE_TEST_SUITE_P(By, Owned, ::testing::Values("packet", "xdp"), name_of_kind);

TEST(Tap, TheKernelIsThePeer) {
  if (const std::string& reason = enter_namespace(); !reason.empty()) GTEST_SKIP() << reason;
  auto port = open_port("tap:tap0,10.7.0.1/24");
  if (!port) GTEST_SKIP() << port.error().message;
  // The kernel answers us, and we see its frames whole.
  const packet::Endpoints ends{(*port)->mac(), packet::broadcast, {0x0a070002}, {0x0a070001}};
  must_send(**port, {packet::arp_request_frame(ends.source_mac, ends.source, ends.target)});
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
