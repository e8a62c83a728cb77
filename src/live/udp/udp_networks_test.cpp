// Several sockets as one port: what goes where, what comes from any, and the descriptor that tells of all.
#include "live/udp/udp_networks.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <set>

namespace spinloom::live {
namespace {

std::unique_ptr<DatagramPort> socket_at(uint32_t address) {
  auto made = open_udp(address);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return std::move(*made);
}

constexpr uint32_t here = 0x7f000001;

std::unique_ptr<DatagramPort> joined(std::vector<UdpAddress>& addresses) {
  std::vector<NetworkPort> ports;
  for (const uint32_t network : {uint32_t{0x0a010000}, here}) {
    ports.push_back({{network, network == here ? 8u : 16u}, socket_at(here)});
    addresses.push_back(ports.back().port->address());
  }
  auto made = join_ports(std::move(ports));
  EXPECT_TRUE(made.ok()) << made.error().message;
  return std::move(*made);
}

bool is_readable(int descriptor) {
  pollfd one{descriptor, POLLIN, 0};
  return poll(&one, 1, 0) == 1;
}

TEST(UdpNetworks, TakeFromEachSocket) {
  std::vector<UdpAddress> addresses;
  const auto port = joined(addresses);
  const auto other = socket_at(here);
  EXPECT_FALSE(port->has_datagrams());
  EXPECT_FALSE(is_readable(port->descriptor()));
  const std::vector<uint8_t> bytes{1, 2, 3};
  std::vector<DatagramOut> out;
  for (const UdpAddress& address : addresses) out.push_back({address, {bytes, {}, {}}});
  other->send(out);
  EXPECT_TRUE(port->has_datagrams());
  EXPECT_TRUE(is_readable(port->descriptor()));
  size_t come = 0;
  for (int tries = 0; tries < 4; ++tries) {
    for (const DatagramIn& one : port->receive()) {
      ++come;
      EXPECT_EQ(one.from, other->address());
      EXPECT_EQ(std::vector<uint8_t>(one.bytes.begin(), one.bytes.end()), bytes);
    }
  }
  EXPECT_EQ(come, 2u);
  EXPECT_FALSE(is_readable(port->descriptor()));
}

TEST(UdpNetworks, SendBySocketsOfTheNetwork) {
  std::vector<UdpAddress> addresses;
  const auto port = joined(addresses);
  EXPECT_EQ(port->address(), addresses[0]);
  const auto other = socket_at(here);
  const std::vector<uint8_t> bytes{9};
  port->send(std::vector<DatagramOut>{{other->address(), {bytes, {}, {}}}});
  const auto taken = other->receive();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].from, addresses[1]);  // the loopback's, although it is not the first
}

TEST(UdpNetworks, TheLoopbackHasItsNetwork) {
  EXPECT_EQ(network_of(here), (UdpNetwork{here, 8}));
  EXPECT_EQ(network_of(0xcb007101), (UdpNetwork{0xcb007101, 32}));
  EXPECT_TRUE((UdpNetwork{here, 8}.holds(0x7f121212)));
  EXPECT_FALSE((UdpNetwork{here, 8}.holds(0x7e000001)));
  EXPECT_TRUE((UdpNetwork{here, 0}.holds(1)));
}

}  // namespace
}  // namespace spinloom::live
