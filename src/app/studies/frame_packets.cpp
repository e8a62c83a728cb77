#include "app/studies/frame_packets.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "nic/packet/checksum.hpp"

namespace spinloom::app {
namespace {

constexpr std::array<uint8_t, 6> nic_mac = {0x02, 0, 0, 0, 0, 1}, far_mac = {0x02, 0, 0, 0, 0, 2};
constexpr uint32_t nic_address = 0x0100000a, far_address = 0x0200000a;  // 10.0.0.1 and 10.0.0.2, in network order

void fill(spl_eth_t& eth, spl_ipv4_t& ip, uint8_t protocol, size_t after_ip) {
  std::copy(nic_mac.begin(), nic_mac.end(), eth.destination);
  std::copy(far_mac.begin(), far_mac.end(), eth.source);
  eth.type = spl_net16(0x0800);
  ip.version_words = 0x45;
  ip.length = spl_net16(static_cast<uint16_t>(sizeof ip + after_ip));
  ip.time_to_live = 64;
  ip.protocol = protocol;
  ip.source = far_address;
  ip.destination = nic_address;
  uint8_t bytes[sizeof ip];
  std::memcpy(bytes, &ip, sizeof ip);
  ip.checksum = spl_net16(packet::checksum(bytes));
}

template <class Headers>
std::vector<uint8_t> join(const Headers& headers, std::span<const uint8_t> payload) {
  std::vector<uint8_t> frame(sizeof headers + payload.size());
  std::memcpy(frame.data(), &headers, sizeof headers);
  std::copy(payload.begin(), payload.end(), frame.begin() + sizeof headers);
  return frame;
}

}  // namespace

std::vector<uint8_t> ping_frame(uint8_t protocol, uint16_t sequence, std::span<const uint8_t> payload) {
  PingHeaders headers{};
  fill(headers.eth, headers.ip, protocol, sizeof headers.udp + payload.size());
  if (protocol == protocol_udp) {
    headers.udp = {spl_net16(40000), spl_net16(7),
                   spl_net16(static_cast<uint16_t>(sizeof headers.udp + payload.size())), 0};
    return join(headers, payload);
  }
  headers.icmp = {8, 0, 0, spl_net16(1), spl_net16(sequence)};
  std::vector<uint8_t> frame = join(headers, payload);
  update_ping_checksum(frame);
  return frame;
}

void update_ping_checksum(std::span<uint8_t> frame) {
  constexpr size_t icmp_offset = sizeof(spl_eth_t) + sizeof(spl_ipv4_t);
  uint8_t* const field = frame.data() + icmp_offset + 2;
  field[0] = field[1] = 0;
  const uint16_t sum = spl_net16(packet::checksum(frame.subspan(icmp_offset)));
  std::memcpy(field, &sum, sizeof sum);
}

void answer_ping(std::span<uint8_t> frame) {
  auto headers = headers_of<PingHeaders>(frame);
  std::swap_ranges(headers.eth.destination, headers.eth.destination + 6, headers.eth.source);
  const uint32_t address = headers.ip.destination;
  headers.ip.destination = headers.ip.source;
  headers.ip.source = address;
  const bool udp = headers.ip.protocol == protocol_udp;
  if (udp) {
    const uint16_t port = headers.udp.destination;
    headers.udp.destination = headers.udp.source;
    headers.udp.source = port;
  } else {
    headers.icmp.type = 0;
  }
  std::memcpy(frame.data(), &headers, sizeof headers);
  if (!udp) update_ping_checksum(frame);
}

std::vector<uint8_t> slmp_frame(uint32_t message, uint32_t offset, uint16_t flags, std::span<const uint8_t> payload) {
  SlmpHeaders headers{};
  const size_t after_udp = sizeof headers.slmp + payload.size();
  fill(headers.eth, headers.ip, protocol_udp, sizeof headers.udp + after_udp);
  headers.udp = {spl_net16(40000), spl_net16(SPL_SLMP_PORT),
                 spl_net16(static_cast<uint16_t>(sizeof headers.udp + after_udp)), 0};
  headers.slmp = {spl_net16(flags), message, spl_net32(offset)};
  return join(headers, payload);
}

}  // namespace spinloom::app
