// For tests: two ports, one at each end of a link in the test's own namespace, and frames that only tests send.
//
// Contract: a PairTest has host_, a packet port, and nic_, the port of the kind that is its parameter: of the other end
//   of a veth pair (nic0 and host0), or of a TAP device (tap0, where host_ is on the kernel's end). It is skipped, with
//   the reason, where the machine refuses one. take() and must_send() wait as long as the patience of tests. Only tests
//   include this.
// Threads: one. Time: host time, for giving up only.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <string>
#include <vector>

#include "base/testing/patience.hpp"
#include "base/testing/seeds.hpp"
#include "ethernet/port/open.hpp"
#include "ethernet/port/testing/namespace_support.hpp"
#include "ethernet/port/testing/port_ways.hpp"
#include "nic/packet/testing/random_frames.hpp"

namespace spinloom::port::test {

// Waits until the port has something, or the patience ends.
inline bool wait_for(FramePort& port, int limit_ms) {
  pollfd place{port.descriptor(), POLLIN, 0};
  return poll(&place, 1, limit_ms) > 0;
}

inline int limit_ms() { return static_cast<int>(std::chrono::milliseconds(patient(std::chrono::seconds(20))).count()); }

// The next `count` frames of a type that only our tests use.
inline Frames take(FramePort& port, size_t count) {
  const auto frames = received(port, count);
  EXPECT_TRUE(frames.ok()) << frames.error().message;
  return frames.ok() ? *frames : Frames();
}

inline FrameBytes experimental(Random& random, const packet::MacAddress& target, uint8_t tags) {
  packet::Ethernet header = packet::test::random_ethernet(random, 0x88b5);
  header.target = target;
  header.source.bytes[0] = 2;
  header.tag_count = tags;
  for (packet::VlanTag& tag : header.tags) tag = {packet::ether_type::vlan, static_cast<uint16_t>(random.next())};
  return packet::ethernet_frame(header, packet::test::random_bytes(random, 46 + random.below(1400)));
}

inline void must_send(FramePort& port, const Frames& frames) {
  const Status sent = send_all(port, frames);
  ASSERT_TRUE(sent.ok()) << sent.error().message;
}

class PairTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const std::string& reason = enter_namespace(); !reason.empty()) GTEST_SKIP() << reason;
    if (!make_pair()) GTEST_SKIP() << "this kernel has no veth pairs";
    const bool tap = std::string_view(GetParam()) == "tap";
    end_ = tap ? "tap0" : "nic0";
    // The kernel would send frames of its own from a TAP device, some time after it is up.
    if (tap) put("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    nic_ = opened(text(GetParam(), ":", end_));
    if (nic_ == nullptr) GTEST_SKIP() << GetParam() << " is refused here: " << refusal_;
    host_ = opened(tap ? "packet:tap0" : "packet:host0");
    ASSERT_NE(host_, nullptr) << refusal_;
  }

  PortPointer opened(const std::string& name) {
    auto port = open_port(name);
    if (port) return std::move(*port);
    refusal_ = port.error().message;
    return nullptr;
  }

  std::string end_;  // the NIC's interface
  PortPointer nic_;
  PortPointer host_;
  std::string refusal_;
};

inline std::string name_of_kind(const ::testing::TestParamInfo<const char*>& info) { return info.param; }

}  // namespace spinloom::port::test
