// UdpNetwork - the addresses that are on one network with this machine, without a gateway between them.
//
// Contract: network_of() is the network of this machine's interface with that address. Without such an interface it is
//   that address alone.
// Threads: any. Time: none.
#pragma once

#include <cstdint>

namespace spinloom::live {

struct UdpNetwork {
  uint32_t address = 0;  // IPv4, host order: that of a machine on this network
  uint32_t bits = 32;  // the number of its first bits that all addresses of the network share

  [[nodiscard]] uint32_t mask() const { return bits == 0 ? 0 : ~uint32_t{0} << (32 - bits); }
  [[nodiscard]] bool holds(uint32_t other) const { return ((address ^ other) & mask()) == 0; }
  bool operator==(const UdpNetwork&) const = default;
};

[[nodiscard]] UdpNetwork network_of(uint32_t address);

}  // namespace spinloom::live
