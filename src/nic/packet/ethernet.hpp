// Ethernet - the frame around every packet (IEEE 802.3), with up to two VLAN tags (IEEE 802.1Q).
//
//   0 target | 6 source | 12 type | 14 payload ...
//   A tag is the type 0x8100 or 0x88a8 and 2 bytes of tag control; the next type follows it.
//
// Contract: read_ethernet() takes a frame without its check sequence; more than two tags are a ReadError. A type below
//   0x0600 is a length (IEEE 802.3, 3.2.6): the payload has just that many bytes; otherwise it is all that is left,
//   padding too. write_ethernet() writes the header to the start of `out` and returns its length; `out` must have
//   ethernet_bytes(header).
// Invariants: (1) the payload lies in the frame; (2) read(write(h)) is h; (3) nothing is read outside of the frame.
// Threads: pure. Time: none.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "nic/packet/address.hpp"
#include "nic/packet/read.hpp"

namespace spinloom::packet {

namespace ether_type {
inline constexpr uint16_t ipv4 = 0x0800;
inline constexpr uint16_t arp = 0x0806;
inline constexpr uint16_t vlan = 0x8100;
inline constexpr uint16_t ipv6 = 0x86dd;
inline constexpr uint16_t service_vlan = 0x88a8;  // the outer of two tags
inline constexpr uint16_t smallest = 0x0600;  // a number below is a length
}  // namespace ether_type

inline constexpr size_t ethernet_header_bytes = 14;
inline constexpr size_t vlan_tag_bytes = 4;
inline constexpr size_t ethernet_frame_bytes_min = 60;  // senders pad shorter frames, without the check sequence

[[nodiscard]] inline bool is_vlan_tag(uint16_t type) {
  return type == ether_type::vlan || type == ether_type::service_vlan;
}

struct VlanTag {
  uint16_t type = ether_type::vlan;
  uint16_t control = 0;  // priority (3 bits), drop eligible (1), VLAN (12)

  [[nodiscard]] uint16_t vlan() const { return control & 0x0fff; }
  [[nodiscard]] uint8_t priority() const { return static_cast<uint8_t>(control >> 13); }
  friend bool operator==(const VlanTag&, const VlanTag&) = default;
};

struct Ethernet {
  MacAddress target;
  MacAddress source;
  std::array<VlanTag, 2> tags{};  // outer first
  uint8_t tag_count = 0;
  uint16_t type = 0;  // the type behind the tags
  Bytes payload;
};

[[nodiscard]] inline size_t ethernet_bytes(const Ethernet& header) {
  return ethernet_header_bytes + vlan_tag_bytes * header.tag_count;
}

[[nodiscard]] ReadResult<Ethernet> read_ethernet(Bytes frame);
size_t write_ethernet(const Ethernet& header, std::span<uint8_t> out);

}  // namespace spinloom::packet
