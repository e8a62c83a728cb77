// Datagram - what goes over a lossy link: a header, a body, and a tag that only members of the job can make.
//
// Contract: begin_datagram() writes the header, the caller appends the body, seal_datagram() appends the tag (tag.hpp).
//   The end of the body may lie elsewhere (`body_end`); it then goes between what is appended and the tag.
//   open_datagram() returns the header and the body of bytes that a process of this job sealed and that nobody has
//   changed; for all other bytes it returns an Error that says why. The header is the 10 bytes of SLMP (FPsPIN,
//   deliverable D4.7, section 4.4.1: flags, message ID, offset), with magic and version before them and what
//   retransmission needs behind them.
// Invariants: (1) the tag covers every byte before it; (2) whatever the bytes are, open_datagram() does not read
//   outside of them.
// Threads: pure. Time: none.
//
//   offset 0 magic "SPLW" | 4 version | 5 reserved, 0 | 6 flags | 8 message ID | 12 offset | 16 source | 20 target;
//   24 source epoch | 28 target epoch | 32 sequence | 36 received | 40 window | 44 ordinal | 48 echo | 52 delay;
//   56 body ... | tag, 8 bytes.
//
// A datagram with ACK carries no packet. Bit i mod 8 of byte i / 8 of its body says that segment received + 1 + i has
// come. Its offset counts how often the source has gone on with packets of the target that it had kept back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "nic/portals/ids.hpp"
#include "nic/wire/siphash.hpp"

namespace spinloom::wire {

namespace slmp {
inline constexpr uint16_t syn = 1;  // the receiver must acknowledge this datagram
inline constexpr uint16_t ack = 2;  // only acknowledges; every datagram does that, too, with `received`
inline constexpr uint16_t eom = 4;  // the last segment of its message
inline constexpr uint16_t now = 8;  // the sender waits: the receiver must not delay the acknowledgement (not of SLMP)
}  // namespace slmp

struct DatagramHeader {
  uint16_t flags = 0;
  uint32_t message_id = 0;  // counts the messages of a source to a target
  uint32_t offset = 0;  // offset in the message of the first payload byte
  nic::Rank source;
  nic::Rank target;
  uint32_t source_epoch = 0;  // the life of the source that sends this; every restart begins a new life
  uint32_t target_epoch = 0;  // the life of the target that this datagram is meant for
  uint32_t sequence = 0;  // counts the segments of a source to a target; segments without SYN have a count of their own
  uint32_t received = 0;  // the source of this datagram has received every segment with SYN before this one
  uint32_t window = 0;  // the number of segments beyond `received` that the source of this datagram takes
  uint32_t ordinal = 0;  // counts what a source sends to a target with SYN; a segment sent again has another ordinal
  uint32_t echo = 0;  // the latest ordinal that has come to the source of this datagram; UINT32_MAX if none has
  uint32_t delay_ns = 0;  // time since that ordinal came
};

struct Datagram {
  DatagramHeader header;
  std::span<const uint8_t> body;
};

inline constexpr size_t datagram_header_bytes = 56;
inline constexpr size_t datagram_tag_bytes = 8;

// Appends the header and returns the place where it begins.
[[nodiscard]] size_t begin_datagram(const DatagramHeader& header, std::vector<uint8_t>& out);
void seal_datagram(const SipKey& secret, size_t begin, std::vector<uint8_t>& out,
                   std::span<const uint8_t> body_end = {});
[[nodiscard]] Result<Datagram> open_datagram(const SipKey& secret, std::span<const uint8_t> bytes);

}  // namespace spinloom::wire
