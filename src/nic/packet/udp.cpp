#include "nic/packet/udp.hpp"

#include "base/byte_order.hpp"

namespace spinloom::packet {

ReadResult<Udp> read_udp(const Ipv4& packet) {
  if (packet.protocol != ip_protocol::udp) return ReadError::other_protocol;
  if (!packet.is_whole()) return ReadError::fragment_of_datagram;
  if (packet.payload.size() < udp_header_bytes) return ReadError::short_udp;
  const uint8_t* const at = packet.payload.data();
  const size_t length = load_be<uint16_t>(at + 4);
  if (length < udp_header_bytes || length > packet.payload.size()) return ReadError::udp_length;
  return Udp{load_be<uint16_t>(at), load_be<uint16_t>(at + 2), load_be<uint16_t>(at + 6) != 0,
             packet.payload.subspan(udp_header_bytes, length - udp_header_bytes)};
}

ReadError verify_udp(const Ipv4& packet, const Udp& datagram) {
  if (!datagram.has_checksum) return ReadError::none;
  const size_t length = udp_header_bytes + datagram.payload.size();
  auto sum = pseudo_header(packet, ip_protocol::udp, static_cast<uint16_t>(length));
  return sum.add(packet.payload.first(length)).finish() == 0 ? ReadError::none : ReadError::udp_checksum;
}

size_t write_udp(const Ipv4& packet, const Udp& header, std::span<uint8_t> out) {
  SPL_ASSERT(out.size() >= udp_header_bytes && out.size() <= ipv4_bytes_max - ipv4_bytes(packet), out.size(),
             " bytes for a UDP datagram");
  uint8_t* const at = out.data();
  store_be(at, header.source_port);
  store_be(at + 2, header.target_port);
  store_be(at + 4, static_cast<uint16_t>(out.size()));
  store_be(at + 6, uint16_t{0});
  if (header.has_checksum) {
    const uint16_t sum = pseudo_header(packet, ip_protocol::udp, static_cast<uint16_t>(out.size())).add(out).finish();
    store_be(at + 6, sum == 0 ? uint16_t{0xffff} : sum);  // 0 would say that there is none
  }
  return udp_header_bytes;
}

}  // namespace spinloom::packet
