// UDP - a datagram between ports (RFC 768).
//
//   0 source port | 2 target port | 4 length | 6 checksum | 8 payload ...
//
// Contract: read_udp() takes a whole IPv4 datagram and looks at the header only; verify_udp() adds up the payload, too.
//   A datagram whose checksum field is 0 has none, and is right. write_udp() writes the header in front of a payload
//   that already stands at out[8]; `out` ends where the payload ends. It returns the header's length.
// Invariants: (1) the payload lies in the IPv4 payload; (2) verify(read(write(u))) holds; (3) nothing is read outside
//   of the IPv4 payload.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <span>

#include "nic/packet/ipv4.hpp"

namespace spinloom::packet {

inline constexpr size_t udp_header_bytes = 8;

struct Udp {
  uint16_t source_port = 0;
  uint16_t target_port = 0;
  bool has_checksum = true;
  Bytes payload;
};

[[nodiscard]] ReadResult<Udp> read_udp(const Ipv4& packet);
[[nodiscard]] ReadError verify_udp(const Ipv4& packet, const Udp& datagram);
size_t write_udp(const Ipv4& packet, const Udp& header, std::span<uint8_t> out);

}  // namespace spinloom::packet
