// Packet format - a nic::Packet as bytes, and bytes as a nic::Packet.
//
// Contract: encode() appends; decode() gives a packet whose payload points into the bytes. Fixed-width fields, little
//   endian, position-independent. A header packet carries all MessageFields, a later one only what names its message
//   and its place. What is not a packet is an Error that says which field is wrong; no bytes make decode() read
//   outside of them. The datagram's tag says who sent them (datagram.hpp).
// Invariants: (1) decode(encode(p)) is p, the payload's space aside; (2) encode(decode(b)) is b.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "nic/packet.hpp"

namespace spinloom::wire {

// The most bytes that encode() adds to the payload.
[[nodiscard]] size_t packet_header_bytes(const nic::Packet& packet);
[[nodiscard]] size_t packet_header_bytes_max();

// An Error unless the packet is consistent: its enumerations have values that exist, its payload lies in its message.
[[nodiscard]] Status check(const nic::Packet& packet);

void encode(const nic::Packet& packet, std::vector<uint8_t>& out);
[[nodiscard]] Result<nic::Packet> decode(std::span<const uint8_t> bytes);

// One line for people to read: every field with its name.
[[nodiscard]] std::string print(const nic::Packet& packet);

}  // namespace spinloom::wire
