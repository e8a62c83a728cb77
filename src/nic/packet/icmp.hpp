// ICMP - messages about IPv4, of which Spinloom answers echo requests (RFC 792).
//
//   0 type | 1 code | 2 checksum | 4 identifier | 6 sequence | 8 payload ...
//
// Contract: read_icmp() takes a whole IPv4 datagram and checks the message's checksum. For messages that are no echo,
//   identifier and sequence are just the two words behind the checksum. write_icmp() writes the header in front of a
//   payload that already stands at out[8]; `out` ends where the payload ends. answer_echo() turns the request at
//   `message` into its answer where it stands, without adding up its payload again.
// Invariants: (1) the payload lies in the IPv4 payload; (2) read(write(m)) is m; (3) nothing is read outside of the
//   IPv4 payload.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <span>

#include "nic/packet/ipv4.hpp"

namespace spinloom::packet {

inline constexpr size_t icmp_header_bytes = 8;

namespace icmp_type {
inline constexpr uint8_t echo_reply = 0;
inline constexpr uint8_t unreachable = 3;
inline constexpr uint8_t echo_request = 8;
}  // namespace icmp_type

struct Icmp {
  uint8_t type = icmp_type::echo_request;
  uint8_t code = 0;
  uint16_t identifier = 0;
  uint16_t sequence = 0;
  Bytes payload;

  [[nodiscard]] bool is_echo_request() const { return type == icmp_type::echo_request && code == 0; }
  [[nodiscard]] bool is_echo_reply() const { return type == icmp_type::echo_reply && code == 0; }
};

[[nodiscard]] ReadResult<Icmp> read_icmp(const Ipv4& packet);
size_t write_icmp(const Icmp& header, std::span<uint8_t> out);
void answer_echo(std::span<uint8_t> message);

}  // namespace spinloom::packet
