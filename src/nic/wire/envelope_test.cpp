// Envelopes and their tag: every bit flipped, every length cut, strangers, and the fields of their bodies.
#include "nic/wire/envelope.hpp"

#include <gtest/gtest.h>

namespace spinloom::wire {
namespace {

constexpr SipKey envelope_key = {0x0706050403020100, 0x0f0e0d0c0b0a0908};

EnvelopeHeader a_header() {
  EnvelopeHeader header;
  header.kind = EnvelopeKind::loan_returned;
  header.flags = EnvelopeHeader::ask | EnvelopeHeader::stop;
  header.source.value = 3;
  header.target.value = 5;
  header.sequence = 0xfffffffffe;
  header.received = 12;
  header.resume_count = 77;
  return header;
}

std::vector<uint8_t> some_envelope() {
  std::vector<uint8_t> out;
  EXPECT_EQ(begin_envelope(a_header(), out), 0u);
  append_loan(Loan{1, 2, 3, uint64_t{4} << 60}, out);
  append_loan_id(uint64_t{5}, out);
  seal_envelope(envelope_key, 0, out);
  return out;
}

TEST(Envelope, ComesBackAsItWas) {
  const std::vector<uint8_t> bytes = some_envelope();
  EXPECT_EQ(bytes.size(), envelope_header_bytes + loan_bytes + 8 + envelope_tag_bytes);
  const auto back = open_envelope(envelope_key, bytes);
  ASSERT_TRUE(back.ok()) << back.error().message;
  const EnvelopeHeader wanted = a_header();
  EXPECT_EQ(back->header.kind, wanted.kind);
  EXPECT_EQ(back->header.flags, wanted.flags);
  EXPECT_EQ(back->header.source, wanted.source);
  EXPECT_EQ(back->header.target, wanted.target);
  EXPECT_EQ(back->header.sequence, wanted.sequence);
  EXPECT_EQ(back->header.received, wanted.received);
  EXPECT_EQ(back->header.resume_count, wanted.resume_count);
  std::span<const uint8_t> body = back->body;
  const auto loan = take_loan(body);
  ASSERT_TRUE(loan.ok());
  EXPECT_EQ(loan->id, 1u);
  EXPECT_EQ(loan->length, 2u);
  EXPECT_EQ(loan->key, 3u);
  EXPECT_EQ(loan->address, uint64_t{4} << 60);
  EXPECT_EQ(*take_loan_id(body), 5u);
  EXPECT_TRUE(body.empty());
  EXPECT_FALSE(take_loan_id(body).ok());
  EXPECT_FALSE(take_loan(body).ok());
}

TEST(Envelope, EveryChangedBitIsSeen) {
  const std::vector<uint8_t> bytes = some_envelope();
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::vector<uint8_t> changed = bytes;
    changed[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
    EXPECT_FALSE(open_envelope(envelope_key, changed).ok()) << bit;
  }
}

TEST(Envelope, EveryOtherLengthIsRefused) {
  const std::vector<uint8_t> bytes = some_envelope();
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(open_envelope(envelope_key, std::span(bytes).first(length)).ok()) << length;
  }
  std::vector<uint8_t> longer = bytes;
  longer.push_back(0);
  EXPECT_FALSE(open_envelope(envelope_key, longer).ok());
}

TEST(Envelope, WhatHasARightTagAndNoWholeHeaderIsRefused) {
  for (size_t length = 0; length < envelope_header_bytes; ++length) {
    std::vector<uint8_t> bytes;
    std::ignore = begin_envelope(a_header(), bytes);
    bytes.resize(length);
    seal_envelope(envelope_key, 0, bytes);
    EXPECT_FALSE(open_envelope(envelope_key, bytes).ok()) << length;
  }
}

TEST(Envelope, AnotherJobCannotMakeOne) {
  EXPECT_FALSE(open_envelope({envelope_key.low, envelope_key.high + 1}, some_envelope()).ok());
}

TEST(Envelope, AKindThatDoesNotExistIsRefused) {
  EnvelopeHeader header = a_header();
  header.kind = static_cast<EnvelopeKind>(static_cast<uint8_t>(EnvelopeKind::note) + 1);
  std::vector<uint8_t> bytes;
  std::ignore = begin_envelope(header, bytes);
  seal_envelope(envelope_key, 0, bytes);
  EXPECT_FALSE(open_envelope(envelope_key, bytes).ok());
}

}  // namespace
}  // namespace spinloom::wire
