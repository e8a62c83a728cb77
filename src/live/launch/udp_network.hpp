// UdpNetworks - one process on several networks: a datagram port over a socket on each of them.
//
// Contract: join_ports() makes one port of several. A datagram leaves by the port whose network its address is on, or, if
//   there is none, by the first one. network_of() is the network of this machine's interface with that address.
// Threads: the owner of the NIC. Time: none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "live/datagram_port.hpp"

namespace spinloom::live {

struct UdpNetwork {
  uint32_t address = 0;  // IPv4, host order: that of a machine on this network
  uint32_t bits = 32;  // how many of its first bits are the network's

  [[nodiscard]] uint32_t mask() const { return bits == 0 ? 0 : ~uint32_t{0} << (32 - bits); }
  [[nodiscard]] bool holds(uint32_t other) const { return ((address ^ other) & mask()) == 0; }
  bool operator==(const UdpNetwork&) const = default;
};

[[nodiscard]] UdpNetwork network_of(uint32_t address);

struct NetworkPort {
  UdpNetwork network;
  std::unique_ptr<DatagramPort> port;
};

[[nodiscard]] Result<std::unique_ptr<DatagramPort>> join_ports(std::vector<NetworkPort> ports);

}  // namespace spinloom::live
