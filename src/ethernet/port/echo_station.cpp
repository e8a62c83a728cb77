#include "ethernet/port/echo_station.hpp"

#include <algorithm>

#include "nic/packet/arp.hpp"
#include "nic/packet/ethernet.hpp"
#include "nic/packet/icmp.hpp"
#include "nic/packet/udp.hpp"

namespace spinloom::port {

size_t EchoStation::answer(Bytes frame, std::span<uint8_t> out) const {
  const auto request = packet::read_ethernet(frame);
  if (!request || (request->target != mac_ && request->target != packet::broadcast)) return 0;
  packet::Ethernet header = *request;
  header.target = request->source;
  header.source = mac_;
  const size_t at = packet::write_ethernet(header, out);
  size_t length = 0;
  if (request->type == packet::ether_type::ipv4) {
    length = answer_ipv4(request->payload, out.subspan(at));
  } else if (request->type == packet::ether_type::arp) {
    const auto arp = packet::read_arp(request->payload);
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
  const auto request = packet::read_ipv4(packet);
  if (!request || request->target != address_) return 0;
  packet::Ipv4 header;
  header.identification = request->identification;
  header.dont_fragment = true;
  header.protocol = request->protocol;
  header.source = address_;
  header.target = request->source;
  const auto body = out.subspan(packet::ipv4_header_bytes);
  size_t length = 0;
  if (const auto udp = packet::read_udp(*request)) {
    if (packet::verify_udp(*request, *udp) != packet::ReadError::none) return 0;
    length = packet::udp_header_bytes + udp->payload.size();
    std::copy(udp->payload.begin(), udp->payload.end(), body.begin() + packet::udp_header_bytes);
    packet::write_udp(header, {udp->target_port, udp->source_port, udp->has_checksum, {}}, body.first(length));
  } else if (const auto icmp = packet::read_icmp(*request); icmp && icmp->is_echo_request()) {
    length = request->payload.size();
    std::copy(request->payload.begin(), request->payload.end(), body.begin());
    packet::answer_echo(body.first(length));
  } else {
    return 0;
  }
  return packet::write_ipv4(header, length, out) + length;
}

Result<size_t> EchoStation::answer_all(FramePort& port) {
  const size_t slot_bytes = std::max(port.frame_bytes_max(), packet::ethernet_frame_bytes_min);
  space_.resize(batch * slot_bytes);
  size_t count = 0;
  if (sent_count_ == answer_count_) {
    SPL_ASSIGN(count, port.receive(frames_));
    sent_count_ = answer_count_ = 0;
    for (const Bytes frame : std::span(frames_).first(count)) {
      const auto out = std::span(space_).subspan(answer_count_ * slot_bytes, slot_bytes);
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
