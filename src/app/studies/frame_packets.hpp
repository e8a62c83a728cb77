// Frame packets - the frames of the ping and SLMP clients, byte for byte.
//
// Contract: Ethernet, IPv4 without options, then ICMP or UDP; an SLMP frame is UDP to port 9330. Checksums are right
//   (RFC 1071); UDP's is left out (zero, RFC 768). Both stations have fixed addresses.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "spinloom/frame.h"

namespace spinloom::app {

struct PingHeaders {
  spl_eth_t eth;
  spl_ipv4_t ip;
  union {
    spl_udp_t udp;
    spl_icmp_t icmp;
  };
} __attribute__((packed, aligned(2)));
struct SlmpHeaders {
  spl_eth_t eth;
  spl_ipv4_t ip;
  spl_udp_t udp;
  spl_slmp_t slmp;
} __attribute__((packed, aligned(2)));

inline constexpr uint8_t protocol_icmp = 1;
inline constexpr uint8_t protocol_udp = 17;

// Returns a ping from the far station: an echo request, or a datagram to UDP's port 7, which has no sequence number.
[[nodiscard]] std::vector<uint8_t> ping_frame(uint8_t protocol, uint16_t sequence, std::span<const uint8_t> payload);
// Turns a ping into its answer, in place.
void answer_ping(std::span<uint8_t> frame);
// Computes the checksum of an ICMP message in a frame anew.
void update_ping_checksum(std::span<uint8_t> frame);

// Returns a frame of a message; `message` stands as the matching unit reads it, in little-endian order.
[[nodiscard]] std::vector<uint8_t> slmp_frame(uint32_t message, uint32_t offset, uint16_t flags,
                                              std::span<const uint8_t> payload);

template <class Headers>
[[nodiscard]] Headers headers_of(std::span<const uint8_t> frame) {
  Headers headers;
  std::memcpy(&headers, frame.data(), sizeof headers);
  return headers;
}

}  // namespace spinloom::app
