#include "nic/packet/build.hpp"

#include <algorithm>

namespace spinloom::packet {

namespace {

Ethernet ethernet_of(const Endpoints& ends, uint16_t type) {
  Ethernet header;
  header.target = ends.target_mac;
  header.source = ends.source_mac;
  header.type = type;
  return header;
}

Ipv4 ipv4_of(const Endpoints& ends, uint8_t protocol) {
  Ipv4 header;
  header.protocol = protocol;
  header.source = ends.source;
  header.target = ends.target;
  return header;
}

// `payload` behind `header_bytes` that are still to be written.
FrameBytes with_header_room(size_t header_bytes, Bytes payload) {
  FrameBytes out(header_bytes + payload.size());
  std::copy(payload.begin(), payload.end(), out.begin() + static_cast<std::ptrdiff_t>(header_bytes));
  return out;
}

}  // namespace

FrameBytes ethernet_frame(const Ethernet& ethernet, Bytes payload) {
  FrameBytes frame = with_header_room(ethernet_bytes(ethernet), payload);
  write_ethernet(ethernet, frame);
  frame.resize(std::max(frame.size(), ethernet_frame_bytes_min));
  return frame;
}

FrameBytes ipv4_frame(const Ethernet& ethernet, const Ipv4& ipv4, Bytes payload) {
  FrameBytes packet = with_header_room(ipv4_bytes(ipv4), payload);
  write_ipv4(ipv4, payload.size(), packet);
  return ethernet_frame(ethernet, packet);
}

FrameBytes udp_frame(const Endpoints& ends, uint16_t source_port, uint16_t target_port, Bytes payload) {
  const Ipv4 ipv4 = ipv4_of(ends, ip_protocol::udp);
  FrameBytes datagram = with_header_room(udp_header_bytes, payload);
  write_udp(ipv4, {source_port, target_port, true, {}}, datagram);
  return ipv4_frame(ethernet_of(ends, ether_type::ipv4), ipv4, datagram);
}

FrameBytes echo_frame(const Endpoints& ends, uint16_t identifier, uint16_t sequence, Bytes payload) {
  FrameBytes message = with_header_room(icmp_header_bytes, payload);
  write_icmp({icmp_type::echo_request, 0, identifier, sequence, {}}, message);
  return ipv4_frame(ethernet_of(ends, ether_type::ipv4), ipv4_of(ends, ip_protocol::icmp), message);
}

FrameBytes arp_request_frame(const MacAddress& source_mac, Ipv4Address source, Ipv4Address asked) {
  FrameBytes packet(arp_bytes);
  write_arp({arp_operation::request, source_mac, source, {}, asked}, packet);
  return ethernet_frame(ethernet_of({source_mac, broadcast, source, asked}, ether_type::arp), packet);
}

}  // namespace spinloom::packet
