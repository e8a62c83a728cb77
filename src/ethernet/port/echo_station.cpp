#include "ethernet/port/echo_station.hpp"

#include <algorithm>

#include "nic/packet/arp.hpp"
#include "nic/packet/ethernet.hpp"
#include "nic/packet/icmp.hpp"
#include "nic/packet/udp.hpp"

namespace spinloom::port {

size_t EchoStation::answer(Bytes frame, std::span<uint8_t> out) const {
  const auto asked = packet::read_ethernet(frame);
  if (!asked || (asked->target != mac_ && asked->target != packet::broadcast)) return 0;
  packet::Ethernet header = *asked;
  header.target = asked->source;
  header.source = mac_;
  const size_t at = packet::write_ethernet(header, out);
  size_t length = 0;
  if (asked->type == packet::ether_type::ipv4) {
    length = answer_ipv4(asked->payload, out.subspan(at));
  } else if (asked->type == packet::ether_type::arp) {
    const auto arp = packet::read_arp(asked->payload);
    if (arp && arp->operation == packet::arp_operation::request && arp->target == address_) {
      length = packet::write_arp(packet::answer_arp(*arp, mac_), out.subspan(at));
    }
  }
  if (length == 0) return 0;
  const size_t all = std::max(at + length, packet::ethernet_frame_bytes_min);
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(at + length), out.begin() + static_cast<std::ptrdiff_t>(all), 0);
  return all;
}

// Writes the answer, which has its ends exchanged and no options. Returns its length, or 0 if there is none.
size_t EchoStation::answer_ipv4(Bytes packet, std::span<uint8_t> out) const {
  const auto asked = packet::read_ipv4(packet);
  if (!asked || asked->target != address_) return 0;
  packet::Ipv4 header;
  header.identification = asked->identification;
  header.dont_fragment = true;
  header.protocol = asked->protocol;
  header.source = address_;
  header.target = asked->source;
  const auto body = out.subspan(packet::ipv4_header_bytes);
  size_t length = 0;
  if (const auto udp = packet::read_udp(*asked)) {
    if (packet::verify_udp(*asked, *udp) != packet::Trouble::none) return 0;
    length = packet::udp_header_bytes + udp->payload.size();
    std::copy(udp->payload.begin(), udp->payload.end(), body.begin() + packet::udp_header_bytes);
    packet::write_udp(header, {udp->target_port, udp->source_port, udp->has_checksum, {}}, body.first(length));
  } else if (const auto icmp = packet::read_icmp(*asked); icmp && icmp->is_echo_request()) {
    length = asked->payload.size();
    std::copy(asked->payload.begin(), asked->payload.end(), body.begin());
    packet::answer_echo(body.first(length));
  } else {
    return 0;
  }
  return packet::write_ipv4(header, length, out) + length;
}

Result<size_t> EchoStation::answer_all(FramePort& port) {
  const size_t room = std::max(port.frame_bytes_max(), packet::ethernet_frame_bytes_min);
  space_.resize(batch * room);
  size_t count = 0;
  if (sent_count_ == answer_count_) {
    SPL_ASSIGN(count, port.receive(frames_));
    sent_count_ = answer_count_ = 0;
    for (const Bytes frame : std::span(frames_).first(count)) {
      const auto out = std::span(space_).subspan(answer_count_ * room, room);
      if (const size_t length = answer(frame, out); length > 0) answers_[answer_count_++] = out.first(length);
    }
  }
  if (sent_count_ < answer_count_) {
    SPL_ASSIGN(const size_t sent, port.send(std::span(answers_).subspan(sent_count_, answer_count_ - sent_count_)));
    sent_count_ += sent;
  }
  return count;
}

}  // namespace spinloom::port
