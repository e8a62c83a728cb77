#include "ethernet/port/finish_checksum.hpp"

#include "base/byte_order.hpp"
#include "nic/packet/ethernet.hpp"
#include "nic/packet/ipv4.hpp"

namespace spinloom::port {

void finish_checksum(std::span<uint8_t> frame, size_t start, size_t offset) {
  if (start > frame.size() || offset > frame.size() - start || frame.size() - start - offset < 2) return;
  const uint16_t sum = packet::checksum(frame.subspan(start));
  store_be(frame.data() + start + offset, sum == 0 ? uint16_t{0xffff} : sum);  // 0 is "none" in UDP
}

void finish_if_offloaded(std::span<uint8_t> frame) {
  const auto ethernet = packet::read_ethernet(frame);
  if (!ethernet || ethernet->type != packet::ether_type::ipv4) return;
  const auto ipv4 = packet::read_ipv4(ethernet->payload);
  if (!ipv4 || !ipv4->is_whole()) return;
  const bool is_udp = ipv4->protocol == packet::ip_protocol::udp;
  if (!is_udp && ipv4->protocol != packet::ip_protocol::tcp) return;
  const size_t offset = is_udp ? 6 : 16;
  if (ipv4->payload.size() < offset + 2) return;
  const auto length = static_cast<uint16_t>(ipv4->payload.size());
  const auto unfinished = static_cast<uint16_t>(~packet::pseudo_header(*ipv4, ipv4->protocol, length).finish());
  if (load_be<uint16_t>(ipv4->payload.data() + offset) != unfinished) return;
  const auto start = static_cast<size_t>(ipv4->payload.data() - frame.data());
  finish_checksum(frame.first(start + ipv4->payload.size()), start, offset);
}

}  // namespace spinloom::port
