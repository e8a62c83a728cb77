#include "nic/packet/ipv4.hpp"

#include <algorithm>

#include "base/byte_order.hpp"

namespace spinloom::packet {

namespace {

constexpr uint16_t flag_dont_fragment = 0x4000;
constexpr uint16_t flag_more_fragments = 0x2000;
constexpr uint16_t offset_mask = 0x1fff;

}  // namespace

ReadResult<Ipv4> read_ipv4(Bytes bytes) {
  if (bytes.size() < ipv4_header_bytes) return ReadError::short_ipv4;
  const uint8_t* const at = bytes.data();
  if (at[0] >> 4 != 4) return ReadError::ipv4_version;
  const size_t header_bytes = size_t{at[0] & 15U} * 4;
  if (header_bytes < ipv4_header_bytes) return ReadError::ipv4_header_length;
  if (header_bytes > bytes.size()) return ReadError::short_ipv4;
  const size_t total = load_be<uint16_t>(at + 2);
  if (total < header_bytes || total > bytes.size()) return ReadError::ipv4_total_length;
  if (checksum(bytes.first(header_bytes)) != 0) return ReadError::ipv4_checksum;

  const auto fragment = load_be<uint16_t>(at + 6);
  Ipv4 header;
  header.service = at[1];
  header.identification = load_be<uint16_t>(at + 4);
  header.dont_fragment = (fragment & flag_dont_fragment) != 0;
  header.more_fragments = (fragment & flag_more_fragments) != 0;
  header.fragment_offset = static_cast<uint16_t>((fragment & offset_mask) * 8);
  header.ttl = at[8];
  header.protocol = at[9];
  header.source = {load_be<uint32_t>(at + 12)};
  header.target = {load_be<uint32_t>(at + 16)};
  header.options = bytes.subspan(ipv4_header_bytes, header_bytes - ipv4_header_bytes);
  header.payload = bytes.subspan(header_bytes, total - header_bytes);
  if (header.fragment_offset + total > ipv4_bytes_max) return ReadError::ipv4_fragment_end;
  if (header.more_fragments && header.payload.size() % 8 != 0) return ReadError::ipv4_fragment_size;
  return header;
}

size_t write_ipv4(const Ipv4& header, size_t payload_bytes, std::span<uint8_t> out) {
  const size_t header_bytes = ipv4_bytes(header);
  SPL_ASSERT(header.options.size() <= ipv4_options_bytes_max && header.options.size() % 4 == 0, header.options.size(),
             " bytes of options");
  SPL_ASSERT(header.fragment_offset % 8 == 0, "a fragment at ", header.fragment_offset);
  SPL_ASSERT(header.fragment_offset + header_bytes + payload_bytes <= ipv4_bytes_max, payload_bytes,
             " bytes of payload in one IPv4 datagram");
  SPL_ASSERT(out.size() >= header_bytes, "no room for an IPv4 header: ", out.size(), " bytes");
  const auto flags = static_cast<uint16_t>((header.dont_fragment ? flag_dont_fragment : 0) |
                                           (header.more_fragments ? flag_more_fragments : 0));
  uint8_t* const at = out.data();
  at[0] = static_cast<uint8_t>(4 << 4 | header_bytes / 4);
  at[1] = header.service;
  store_be(at + 2, static_cast<uint16_t>(header_bytes + payload_bytes));
  store_be(at + 4, header.identification);
  store_be(at + 6, static_cast<uint16_t>(flags | header.fragment_offset / 8));
  at[8] = header.ttl;
  at[9] = header.protocol;
  store_be(at + 10, uint16_t{0});
  store_be(at + 12, header.source.value);
  store_be(at + 16, header.target.value);
  std::copy(header.options.begin(), header.options.end(), at + ipv4_header_bytes);
  store_be(at + 10, checksum(out.first(header_bytes)));
  return header_bytes;
}

Checksum pseudo_header(const Ipv4& header, uint8_t protocol, uint16_t length) {
  Checksum sum;
  sum.add(header.source.value).add(header.target.value).add(uint16_t{protocol}).add(length);
  return sum;
}

}  // namespace spinloom::packet
