// UdpNetworks - one process on several networks: a datagram port over a socket on each of them.
//
// Contract: join_ports() makes one port of several. A datagram leaves by the port whose network its address is on, or,
//   if there is none, by the first one.
// Threads: the owner of the NIC. Time: none.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "live/launch/udp_network.hpp"
#include "live/udp/datagram_port.hpp"

namespace spinloom::live {

struct NetworkPort {
  UdpNetwork network;
  std::unique_ptr<DatagramPort> port;
};

[[nodiscard]] Result<std::unique_ptr<DatagramPort>> join_ports(std::vector<NetworkPort> ports);

}  // namespace spinloom::live
