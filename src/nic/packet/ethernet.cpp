#include "nic/packet/ethernet.hpp"

#include "base/byte_order.hpp"

namespace spinloom::packet {

ReadResult<Ethernet> read_ethernet(Bytes frame) {
  if (frame.size() < ethernet_header_bytes) return ReadError::short_ethernet;
  Ethernet header;
  header.target = load_mac(frame.data());
  header.source = load_mac(frame.data() + 6);
  header.type = load_be<uint16_t>(frame.data() + 12);
  size_t at = ethernet_header_bytes;
  for (; is_vlan_tag(header.type); at += vlan_tag_bytes) {
    if (header.tag_count == header.tags.size()) return ReadError::many_tags;
    if (frame.size() < at + vlan_tag_bytes) return ReadError::short_ethernet;
    header.tags[header.tag_count++] = {header.type, load_be<uint16_t>(frame.data() + at)};
    header.type = load_be<uint16_t>(frame.data() + at + 2);
  }
  header.payload = frame.subspan(at);
  if (header.type < ether_type::smallest) {
    if (header.type > header.payload.size()) return ReadError::long_llc;
    header.payload = header.payload.first(header.type);
  }
  return header;
}

size_t write_ethernet(const Ethernet& header, std::span<uint8_t> out) {
  SPL_ASSERT(header.tag_count <= header.tags.size(), header.tag_count, " tags");
  SPL_ASSERT(out.size() >= ethernet_bytes(header), "no room for an Ethernet header: ", out.size(), " bytes");
  store_mac(out.data(), header.target);
  store_mac(out.data() + 6, header.source);
  size_t at = 12;
  for (size_t i = 0; i < header.tag_count; ++i, at += vlan_tag_bytes) {
    store_be(out.data() + at, header.tags[i].type);
    store_be(out.data() + at + 2, header.tags[i].control);
  }
  store_be(out.data() + at, header.type);
  return at + 2;
}

}  // namespace spinloom::packet
