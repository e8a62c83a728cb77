// IPv4 - the header of an internet datagram or of a fragment of one (RFC 791).
//
//   0 version 4, header words | 1 service | 2 total length | 4 identification | 6 flags, fragment offset | 8 TTL |
//   9 protocol | 10 checksum | 12 source | 16 target | 20 options ... payload ...
//
// Contract: read_ipv4() takes the payload of an Ethernet frame and checks the header's checksum. The payload ends with
//   the total length, which may be before the end of the frame: short frames are padded. Options are given as bytes.
//   Fragments are read like whole datagrams; reassembling them is not done here: is_whole() says whether there is
//   nothing to do. write_ipv4() writes a header for a payload of `payload_bytes` with its checksum, and returns its
//   length, ipv4_bytes(header).
// Invariants: (1) options and payload lie in the bytes, within the total length; (2) a fragment ends within 65535
//   bytes, and one that others follow has a multiple of 8 bytes; (3) read(write(h)) is h; (4) nothing is read outside
//   of the bytes.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <span>

#include "nic/packet/address.hpp"
#include "nic/packet/checksum.hpp"
#include "nic/packet/read.hpp"

namespace spinloom::packet {

namespace ip_protocol {
inline constexpr uint8_t icmp = 1;
inline constexpr uint8_t tcp = 6;
inline constexpr uint8_t udp = 17;
}  // namespace ip_protocol

inline constexpr size_t ipv4_header_bytes = 20;  // a header without options
inline constexpr size_t ipv4_options_bytes_max = 40;
inline constexpr size_t ipv4_bytes_max = 65535;  // the longest datagram, header and all

struct Ipv4 {
  uint8_t service = 0;  // differentiated services and ECN
  uint16_t identification = 0;
  bool dont_fragment = false;
  bool more_fragments = false;
  uint16_t fragment_offset = 0;  // a number of bytes, a multiple of 8
  uint8_t ttl = 64;
  uint8_t protocol = 0;
  Ipv4Address source;
  Ipv4Address target;
  Bytes options;  // a multiple of 4
  Bytes payload;

  [[nodiscard]] bool is_whole() const { return !more_fragments && fragment_offset == 0; }
};

[[nodiscard]] inline size_t ipv4_bytes(const Ipv4& header) { return ipv4_header_bytes + header.options.size(); }

[[nodiscard]] ReadResult<Ipv4> read_ipv4(Bytes bytes);
size_t write_ipv4(const Ipv4& header, size_t payload_bytes, std::span<uint8_t> out);

// The sum over what UDP and TCP add of the IPv4 header to their checksums (RFC 768, RFC 9293).
[[nodiscard]] Checksum pseudo_header(const Ipv4& header, uint8_t protocol, uint16_t length);

}  // namespace spinloom::packet
