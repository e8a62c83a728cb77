// Packet format - a nic::Packet as bytes, and bytes as a nic::Packet.
//
// Contract: encode() appends the packet's bytes; decode() returns a packet whose payload points into the bytes.
//   Fields have a fixed width, are little endian and may lie at any address. The first packet of a message carries
//   all MessageFields, a later one only what names its message and its place in it. Bytes that are no packet give an
//   Error that says which field is wrong; whatever the bytes are, decode() does not read outside of them. decode()
//   does not check their sender: the datagram's tag does (datagram.hpp).
// Invariants: (1) decode(encode(p)) is p, except for the payload's space and address, and for the MessageFields of a
//   packet that is not the first; (2) encode(decode(b)) is b.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "nic/portals/packet.hpp"

namespace spinloom::wire {

// The bytes that encode() adds to this packet's payload, and the most that it adds to any.
[[nodiscard]] size_t packet_header_bytes(const nic::Packet& packet);
[[nodiscard]] size_t packet_header_bytes_max();

// Returns an Error unless the packet's enumerations have values that exist and its payload and missing bytes lie in its
// message.
[[nodiscard]] Status check(const nic::Packet& packet);

void encode(const nic::Packet& packet, std::vector<uint8_t>& out);
void encode_header(const nic::Packet& packet, std::vector<uint8_t>& out);  // all but the payload, which comes last
[[nodiscard]] Result<nic::Packet> decode(std::span<const uint8_t> bytes);

// One line for people to read: every field with its name.
[[nodiscard]] std::string describe(const nic::Packet& packet);

}  // namespace spinloom::wire
