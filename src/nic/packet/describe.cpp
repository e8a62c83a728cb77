#include "nic/packet/describe.hpp"

#include <sstream>

#include "nic/packet/arp.hpp"
#include "nic/packet/ethernet.hpp"
#include "nic/packet/icmp.hpp"
#include "nic/packet/udp.hpp"

namespace spinloom::packet {

namespace {

std::string hex(uint32_t number) {
  std::ostringstream out;
  out << "0x" << std::hex << number;
  return out.str();
}

std::string describe_arp(Bytes payload) {
  const auto arp = read_arp(payload);
  if (!arp) return text("ARP, ", sentence(arp.error));
  if (arp->operation == arp_operation::request)
    return text("ARP who has ", to_text(arp->target), ", asks ", to_text(arp->sender));
  if (arp->operation == arp_operation::reply)
    return text("ARP ", to_text(arp->sender), " is at ", to_text(arp->sender_mac));
  return text("ARP operation ", arp->operation);
}

std::string describe_udp(const Ipv4& packet) {
  const auto udp = read_udp(packet);
  if (!udp) return text(to_text(packet.source), " > ", to_text(packet.target), " UDP, ", sentence(udp.error));
  std::string out = text(to_text(packet.source), ":", udp->source_port, " > ", to_text(packet.target), ":",
                         udp->target_port, " UDP ", udp->payload.size(), " bytes");
  if (!udp->has_checksum) out += ", no checksum";
  if (const ReadError wrong = verify_udp(packet, *udp); wrong != ReadError::none) out += text(", ", sentence(wrong));
  return out;
}

std::string describe_icmp(const Ipv4& packet) {
  const std::string ends = text(to_text(packet.source), " > ", to_text(packet.target));
  const auto icmp = read_icmp(packet);
  if (!icmp) return text(ends, " ICMP, ", sentence(icmp.error));
  if (!icmp->is_echo_request() && !icmp->is_echo_reply()) {
    return text(ends, " ICMP type ", int{icmp->type}, " code ", int{icmp->code}, ", ", icmp->payload.size(), " bytes");
  }
  return text(ends, " ICMP echo ", icmp->is_echo_request() ? "request" : "reply", " id ", icmp->identifier, " seq ",
              icmp->sequence, " ", icmp->payload.size(), " bytes");
}

std::string describe_ipv4(Bytes payload) {
  const auto packet = read_ipv4(payload);
  if (!packet) return text("IPv4, ", sentence(packet.error));
  std::string out;
  if (!packet->is_whole()) {
    out = text(to_text(packet->source), " > ", to_text(packet->target), " fragment ", packet->identification,
               " of protocol ", int{packet->protocol}, ": ", packet->payload.size(), " bytes at ",
               packet->fragment_offset, packet->more_fragments ? ", more follow" : ", the last");
  } else if (packet->protocol == ip_protocol::udp) {
    out = describe_udp(*packet);
  } else if (packet->protocol == ip_protocol::icmp) {
    out = describe_icmp(*packet);
  } else {
    out = text(to_text(packet->source), " > ", to_text(packet->target), " protocol ", int{packet->protocol}, " ",
               packet->payload.size(), " bytes");
  }
  if (!packet->options.empty()) out += text(", ", packet->options.size(), " bytes of options");
  return out;
}

}  // namespace

std::string describe(Bytes frame) {
  const auto ethernet = read_ethernet(frame);
  if (!ethernet) return text(sentence(ethernet.error), ": frame of ", frame.size(), " bytes");
  std::string out;
  for (size_t i = 0; i < ethernet->tag_count; ++i) out += text("VLAN ", ethernet->tags[i].vlan(), " ");
  if (ethernet->type == ether_type::ipv4) {
    out += describe_ipv4(ethernet->payload);
  } else if (ethernet->type == ether_type::arp) {
    out += describe_arp(ethernet->payload);
  } else {
    out += text(to_text(ethernet->source), " > ", to_text(ethernet->target));
    out += ethernet->type < ether_type::smallest ? text(" 802.3, ", ethernet->type, " bytes")
                                                 : text(" type ", hex(ethernet->type));
  }
  return out + text(", frame of ", frame.size(), " bytes");
}

}  // namespace spinloom::packet
