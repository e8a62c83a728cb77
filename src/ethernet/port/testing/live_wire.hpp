// Live wire - a port at one end of a link in the test's own namespace, and a packet port at the other.
//
// Contract: live_wire() opens the text of the port under test on nic0 of a veth pair, or on the TAP device tap0.
//   Code::unsupported where this machine refuses that.
// Threads: one. Time: host time, for giving up only.
#pragma once

#include <string>
#include <utility>

#include "ethernet/port/open.hpp"
#include "ethernet/port/testing/namespace_support.hpp"
#include "ethernet/port/testing/port_ways.hpp"

namespace spinloom::port::test {

class LiveWire final : public Wire {
 public:
  LiveWire(PortPointer port, PortPointer other) : port_(std::move(port)), other_(std::move(other)) {}
  FramePort& port() override { return *port_; }
  Status give(std::span<const FrameBytes> frames) override { return send_all(*other_, frames); }
  Result<Frames> taken(size_t count) override { return received(*other_, count); }

 private:
  PortPointer port_;
  PortPointer other_;
};

inline Result<std::unique_ptr<Wire>> live_wire(const std::string& text, const char* other) {
  const auto refused = [](const auto& why) { return fail(Code::unsupported, why); };
  if (const std::string& reason = enter_namespace(); !reason.empty()) return refused(reason);
  if (!make_pair()) return refused("this kernel has no veth pairs");
  // The kernel would send frames of its own from a TAP device, some time after it is up.
  put("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
  auto port = open_port(text);
  if (!port.ok()) return refused(text + " is refused here: " + port.error().message);
  auto end = open_port(other);
  if (!end.ok()) return end.error();
  return std::unique_ptr<Wire>(std::make_unique<LiveWire>(std::move(*port), std::move(*end)));
}

}  // namespace spinloom::port::test
