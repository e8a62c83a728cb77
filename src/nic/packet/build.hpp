// Build - whole frames, for tests, tools and demonstrations.
//
// Contract: each function returns a frame that the readers of this floor take, with right checksums, padded to 60 bytes
//   as senders on Ethernet do. Ends says from whom to whom. Data paths write headers into their own buffers instead.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <vector>

#include "nic/packet/arp.hpp"
#include "nic/packet/ethernet.hpp"
#include "nic/packet/icmp.hpp"
#include "nic/packet/udp.hpp"

namespace spinloom::packet {

struct Endpoints {
  MacAddress source_mac;
  MacAddress target_mac;
  Ipv4Address source;
  Ipv4Address target;
};

using FrameBytes = std::vector<uint8_t>;

[[nodiscard]] FrameBytes udp_frame(const Endpoints& ends, uint16_t source_port, uint16_t target_port, Bytes payload);
[[nodiscard]] FrameBytes echo_frame(const Endpoints& ends, uint16_t identifier, uint16_t sequence, Bytes payload);
[[nodiscard]] FrameBytes arp_request_frame(const MacAddress& source_mac, Ipv4Address source, Ipv4Address asked);

// Make frames with tags, options, fragments or other types from their headers. `ethernet.payload` and `ipv4.payload`
// are not used.
[[nodiscard]] FrameBytes ethernet_frame(const Ethernet& ethernet, Bytes payload);
[[nodiscard]] FrameBytes ipv4_frame(const Ethernet& ethernet, const Ipv4& ipv4, Bytes payload);

}  // namespace spinloom::packet
