// Datagram - what goes over a lossy link: an SLMP header, ours around it, a body, and the job's tag.
//
// Contract: begin(), then the body is appended, then seal(). open() gives header and body of bytes that a process of
//   this job sealed and that are undamaged; for any other bytes it is an Error that says why. The header is SLMP's 10
//   bytes (FPsPIN, deliverable D4.7, section 4.4.1: flags, message ID, offset) after magic and version, and what
//   retransmission needs.
// Invariants: (1) the tag covers every byte before it; (2) no bytes make open() read outside of them.
// Threads: pure. Time: none.
//
//   offset 0 magic "SPLW" | 4 version | 5 reserved, 0 | 6 flags | 8 message ID | 12 offset | 16 source | 20 target
//   24 source epoch | 28 target epoch | 32 sequence | 36 received | 40 window | 44 body ... | tag, 8 bytes
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "nic/ids.hpp"
#include "wire/siphash.hpp"

namespace spinloom::wire {

namespace slmp {
inline constexpr uint16_t syn = 1;  // is to be acknowledged
inline constexpr uint16_t ack = 2;  // acknowledges: the same header, no body
inline constexpr uint16_t eom = 4;  // the last segment of its message
}  // namespace slmp

struct DatagramHeader {
  uint16_t flags = 0;
  uint32_t message_id = 0;  // counts the messages of a source to a target
  uint32_t offset = 0;  // of the first payload byte in the message
  nic::Rank source;
  nic::Rank target;
  uint32_t source_epoch = 0;  // which life of the source sends this; target_epoch: to which life of the target
  uint32_t target_epoch = 0;
  uint32_t sequence = 0;  // counts the segments of a source to a target; segments without SYN have a count of their own
  uint32_t received = 0;  // the source of this datagram has received every segment with SYN before this one
  uint32_t window = 0;  // how many segments beyond `received` the source of this datagram takes
};

struct Datagram {
  DatagramHeader header;
  std::span<const uint8_t> body;
};

inline constexpr size_t datagram_header_bytes = 44;
inline constexpr size_t datagram_tag_bytes = 8;

// Appends the header and returns the place where it begins.
[[nodiscard]] size_t begin(const DatagramHeader& header, std::vector<uint8_t>& out);
void seal(const SipKey& secret, size_t begin, std::vector<uint8_t>& out);
[[nodiscard]] Result<Datagram> open(const SipKey& secret, std::span<const uint8_t> bytes);

}  // namespace spinloom::wire
