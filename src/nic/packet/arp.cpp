#include "nic/packet/arp.hpp"

#include "base/byte_order.hpp"
#include "nic/packet/ethernet.hpp"

namespace spinloom::packet {

namespace {

constexpr uint64_t ethernet_and_ipv4 = 0x000108000604;  // hardware, protocol, and the lengths of their addresses

}  // namespace

ReadResult<Arp> read_arp(Bytes payload) {
  if (payload.size() < arp_bytes) return ReadError::short_arp;
  const uint8_t* const at = payload.data();
  if (load_be<uint64_t>(at) >> 16 != ethernet_and_ipv4) return ReadError::foreign_arp;
  Arp packet;
  packet.operation = load_be<uint16_t>(at + 6);
  packet.sender_mac = load_mac(at + 8);
  packet.sender = {load_be<uint32_t>(at + 14)};
  packet.target_mac = load_mac(at + 18);
  packet.target = {load_be<uint32_t>(at + 24)};
  return packet;
}

size_t write_arp(const Arp& packet, std::span<uint8_t> out) {
  SPL_ASSERT(out.size() >= arp_bytes, "no room for an ARP packet: ", out.size(), " bytes");
  uint8_t* const at = out.data();
  store_be(at, ethernet_and_ipv4 << 16 | packet.operation);
  store_mac(at + 8, packet.sender_mac);
  store_be(at + 14, packet.sender.value);
  store_mac(at + 18, packet.target_mac);
  store_be(at + 24, packet.target.value);
  return arp_bytes;
}

Arp answer_arp(const Arp& request, const MacAddress& mac) {
  return {arp_operation::reply, mac, request.target, request.sender_mac, request.sender};
}

}  // namespace spinloom::packet
