#include "nic/packet/read.hpp"

namespace spinloom::packet {

const char* sentence(ReadError error) {
  switch (error) {
    case ReadError::none: return "nothing is wrong";
    case ReadError::short_ethernet:
      return "the frame ends within its Ethernet header (14 bytes, 4 more for each VLAN tag)";
    case ReadError::many_tags:
      return "the frame has more than two VLAN tags (IEEE 802.1Q knows an outer and an inner one)";
    case ReadError::long_llc: return "an IEEE 802.3 length field reaches beyond the frame's end";
    case ReadError::short_arp: return "an ARP packet has fewer than its 28 bytes (RFC 826)";
    case ReadError::foreign_arp:
      return "an ARP packet is not about IPv4 addresses on Ethernet (RFC 826: types 1 and 0x0800)";
    case ReadError::short_ipv4:
      return "the packet ends within its IPv4 header (20 bytes and options; RFC 791, section 3.1)";
    case ReadError::ipv4_version: return "an IPv4 packet's version field is not 4 (RFC 791, section 3.1)";
    case ReadError::ipv4_header_length: return "an IPv4 header's length field is below 5 words (RFC 791, section 3.1)";
    case ReadError::ipv4_total_length:
      return "an IPv4 total length is below its header's, or reaches beyond the frame's end (RFC 791, section 3.1)";
    case ReadError::ipv4_checksum: return "an IPv4 header's checksum is wrong (RFC 791, section 3.1)";
    case ReadError::ipv4_fragment_end: return "an IPv4 fragment ends beyond 65535 bytes (RFC 791, section 3.2)";
    case ReadError::ipv4_fragment_size:
      return "an IPv4 fragment that others follow is not a multiple of 8 bytes long (RFC 791, section 3.2)";
    case ReadError::fragment_of_datagram:
      return "a part of an IPv4 datagram is read as if it was a whole one: reassemble it";
    case ReadError::other_protocol: return "an IPv4 packet carries another protocol than the one that it is read as";
    case ReadError::short_udp: return "the packet ends within its UDP header (8 bytes, RFC 768)";
    case ReadError::udp_length: return "a UDP length is below 8, or reaches beyond its IPv4 packet (RFC 768)";
    case ReadError::udp_checksum: return "a UDP checksum is wrong (RFC 768)";
    case ReadError::short_icmp: return "the packet ends within its ICMP header (8 bytes, RFC 792)";
    case ReadError::icmp_checksum: return "an ICMP checksum is wrong (RFC 792)";
  }
  return "unknown";
}

}  // namespace spinloom::packet
