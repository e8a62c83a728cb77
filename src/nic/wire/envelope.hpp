// Envelope - what goes over a fabric that loses nothing: a header, a body, and a tag that only members of the job can
// make.
//
// Contract: begin_envelope() writes the header, the caller appends the body, seal_envelope() appends the tag.
//   open_envelope() returns the header and the body of bytes that a process of this job sealed and that nobody has
//   changed; for all other bytes it returns an Error that says why. The sequence is for the receiver: envelopes of one
//   source come in its order, without a gap, so that a repeated or a missing one shows.
// Invariants: (1) the tag covers every byte before it; (2) whatever the bytes are, open_envelope() does not read
//   outside of them.
// Threads: pure. Time: none.
//
//   offset 0 magic "SPLF" | 4 version | 5 kind | 6 flags | 8 source | 12 target | 16 sequence | 24 received
//   32 resume count | 36 body ... | tag, 8 bytes
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "nic/portals/ids.hpp"
#include "nic/wire/siphash.hpp"

namespace spinloom::wire {

enum class EnvelopeKind : uint8_t {
  packet,  // the body is a packet (packet_format.hpp)
  loan,  // the body is a Loan and a packet whose payload stays in the source's memory
  loan_returned,  // the body is the ID of a loan that the source of this envelope does not need any more
  note  // no body
};

struct EnvelopeHeader {
  static constexpr uint16_t stop = 1;  // the target must send nothing but answers, until an envelope without this flag
  static constexpr uint16_t ask = 2;  // the target must answer by a note at once
  static constexpr uint16_t bye = 4;  // the source leaves the job
  EnvelopeKind kind = EnvelopeKind::note;
  uint16_t flags = 0;
  nic::Rank source;
  nic::Rank target;
  uint64_t sequence = 0;  // counts the envelopes from this source to this target
  uint64_t received = 0;  // the source has taken every envelope of the target before this one
  // The number of times that the source has gone on with packets of the target that it had kept back.
  uint32_t resume_count = 0;
};

// Memory of the source that the target may read.
struct Loan {
  uint64_t id = 0;  // the lender's number for this loan
  uint64_t length = 0;  // bytes
  uint64_t key = 0;  // the fabric's key for the memory region
  uint64_t address = 0;  // the address of the first byte, as the fabric wants it
};

struct Envelope {
  EnvelopeHeader header;
  std::span<const uint8_t> body;
};

inline constexpr size_t envelope_header_bytes = 36;
inline constexpr size_t envelope_tag_bytes = 8;
inline constexpr size_t loan_bytes = 32;

// Appends the header and returns the place where it begins.
[[nodiscard]] size_t begin_envelope(const EnvelopeHeader& header, std::vector<uint8_t>& out);
void append_loan(const Loan& loan, std::vector<uint8_t>& out);
void append_loan_id(uint64_t id, std::vector<uint8_t>& out);
void seal_envelope(const SipKey& secret, size_t begin, std::vector<uint8_t>& out);
[[nodiscard]] Result<Envelope> open_envelope(const SipKey& secret, std::span<const uint8_t> bytes);
// Take a field from the front of a body; an Error if the body is too short.
[[nodiscard]] Result<Loan> take_loan(std::span<const uint8_t>& body);
[[nodiscard]] Result<uint64_t> take_loan_id(std::span<const uint8_t>& body);

}  // namespace spinloom::wire
