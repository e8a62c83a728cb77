#include "nic/packet/icmp.hpp"

#include "base/byte_order.hpp"

namespace spinloom::packet {

ReadResult<Icmp> read_icmp(const Ipv4& packet) {
  if (packet.protocol != ip_protocol::icmp) return ReadError::other_protocol;
  if (!packet.is_whole()) return ReadError::fragment_of_datagram;
  if (packet.payload.size() < icmp_header_bytes) return ReadError::short_icmp;
  if (checksum(packet.payload) != 0) return ReadError::icmp_checksum;
  const uint8_t* const at = packet.payload.data();
  return Icmp{at[0], at[1], load_be<uint16_t>(at + 4), load_be<uint16_t>(at + 6),
              packet.payload.subspan(icmp_header_bytes)};
}

size_t write_icmp(const Icmp& header, std::span<uint8_t> out) {
  SPL_ASSERT(out.size() >= icmp_header_bytes, "no room for an ICMP header: ", out.size(), " bytes");
  uint8_t* const at = out.data();
  at[0] = header.type;
  at[1] = header.code;
  store_be(at + 2, uint16_t{0});
  store_be(at + 4, header.identifier);
  store_be(at + 6, header.sequence);
  store_be(at + 2, checksum(out));
  return icmp_header_bytes;
}

void answer_echo(std::span<uint8_t> message) {
  SPL_ASSERT(message.size() >= icmp_header_bytes && message[0] == icmp_type::echo_request, "no echo request");
  const auto before = load_be<uint16_t>(message.data());
  message[0] = icmp_type::echo_reply;
  const auto after = load_be<uint16_t>(message.data());
  store_be(message.data() + 2, update_checksum(load_be<uint16_t>(message.data() + 2), before, after));
}

}  // namespace spinloom::packet
