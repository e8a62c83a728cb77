#include "nic/wire/envelope.hpp"

#include "base/byte_order.hpp"
#include "nic/wire/tag.hpp"

namespace spinloom::wire {
namespace {

constexpr uint32_t envelope_magic = 0x464c5053;  // "SPLF"
constexpr uint8_t envelope_version = 1;
constexpr size_t loan_id_bytes = 8;

void append_word(uint64_t word, std::vector<uint8_t>& out) {
  out.resize(out.size() + sizeof word);
  store_le(out.data() + out.size() - sizeof word, word);
}

}  // namespace

size_t begin_envelope(const EnvelopeHeader& header, std::vector<uint8_t>& out) {
  const size_t start = out.size();
  out.resize(start + envelope_header_bytes);
  uint8_t* const to = out.data() + start;
  store_le(to, envelope_magic);
  store_le(to + 4, envelope_version);
  store_le(to + 5, static_cast<uint8_t>(header.kind));
  store_le(to + 6, header.flags);
  store_le(to + 8, header.source.value);
  store_le(to + 12, header.target.value);
  store_le(to + 16, header.sequence);
  store_le(to + 24, header.received);
  store_le(to + 32, header.resume_count);
  return start;
}

void append_loan_id(uint64_t id, std::vector<uint8_t>& out) { append_word(id, out); }

void append_loan(const Loan& loan, std::vector<uint8_t>& out) {
  for (const uint64_t field : {loan.id, loan.length, loan.key, loan.address}) append_word(field, out);
}

void seal_envelope(const SipKey& secret, size_t begin, std::vector<uint8_t>& out) {
  append_word(tag_of(secret, {out.data() + begin, out.size() - begin}, {}), out);
}

Result<Envelope> open_envelope(const SipKey& secret, std::span<const uint8_t> bytes) {
  constexpr size_t bytes_min = envelope_header_bytes + envelope_tag_bytes;
  if (bytes.size() < bytes_min) return fail(Code::invalid, "envelope: ", bytes.size(), " B, the least is ", bytes_min);
  const uint8_t* const from = bytes.data();
  if (load_le<uint32_t>(from) != envelope_magic)
    return fail(Code::invalid, "envelope: it is none of ours, its magic is wrong");
  if (load_le<uint8_t>(from + 4) != envelope_version) {
    return fail(Code::invalid, "envelope: version ", int{from[4]}, ", this is version ", int{envelope_version});
  }
  const size_t tagged_bytes = bytes.size() - envelope_tag_bytes;
  if (load_le<uint64_t>(from + tagged_bytes) != tag_of(secret, bytes.first(tagged_bytes), {})) {
    return fail(Code::invalid, "envelope: its tag is wrong: damaged, or of another job");
  }
  if (from[5] > static_cast<uint8_t>(EnvelopeKind::note)) {
    return fail(Code::invalid, "envelope: kind ", int{from[5]}, " does not exist");
  }
  Envelope envelope;
  EnvelopeHeader& header = envelope.header;
  header.kind = static_cast<EnvelopeKind>(from[5]);
  header.flags = load_le<uint16_t>(from + 6);
  header.source.value = load_le<uint32_t>(from + 8);
  header.target.value = load_le<uint32_t>(from + 12);
  header.sequence = load_le<uint64_t>(from + 16);
  header.received = load_le<uint64_t>(from + 24);
  header.resume_count = load_le<uint32_t>(from + 32);
  envelope.body = bytes.subspan(envelope_header_bytes, tagged_bytes - envelope_header_bytes);
  return envelope;
}

Result<uint64_t> take_loan_id(std::span<const uint8_t>& body) {
  if (body.size() < loan_id_bytes) return fail(Code::invalid, "envelope: ", body.size(), " B end before a name does");
  const uint64_t id = load_le<uint64_t>(body.data());
  body = body.subspan(loan_id_bytes);
  return id;
}

Result<Loan> take_loan(std::span<const uint8_t>& body) {
  if (body.size() < loan_bytes) return fail(Code::invalid, "envelope: ", body.size(), " B end before a loan does");
  Loan loan;
  for (uint64_t* field : {&loan.id, &loan.length, &loan.key, &loan.address}) {
    *field = load_le<uint64_t>(body.data());
    body = body.subspan(sizeof *field);
  }
  return loan;
}

}  // namespace spinloom::wire
