// ARP - which Ethernet address has an IPv4 address (RFC 826).
//
//   0 hardware 1 | 2 protocol 0x0800 | 4 lengths 6, 4 | 6 operation | 8 sender MAC | 14 sender IPv4 | 18 target MAC |
//   24 target IPv4
//
// Contract: read_arp() takes the payload of an Ethernet frame, padding too; too few bytes, other hardware and other
//   protocols are a ReadError.
//   write_arp() writes arp_bytes bytes. answer_arp() is the answer of the station `mac` that has the asked address.
// Invariants: (1) read(write(a)) is a; (2) nothing is read outside of the payload.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <span>

#include "nic/packet/address.hpp"
#include "nic/packet/read.hpp"

namespace spinloom::packet {

inline constexpr size_t arp_bytes = 28;

namespace arp_operation {
inline constexpr uint16_t request = 1;
inline constexpr uint16_t reply = 2;
}  // namespace arp_operation

struct Arp {
  uint16_t operation = arp_operation::request;
  MacAddress sender_mac;
  Ipv4Address sender;
  MacAddress target_mac;
  Ipv4Address target;

  friend bool operator==(const Arp&, const Arp&) = default;
};

[[nodiscard]] ReadResult<Arp> read_arp(Bytes payload);
size_t write_arp(const Arp& packet, std::span<uint8_t> out);
[[nodiscard]] Arp answer_arp(const Arp& request, const MacAddress& mac);

}  // namespace spinloom::packet
