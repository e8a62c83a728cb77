// Datagrams and their tag: reference vectors, every bit flipped, every length cut, strangers.
#include "nic/wire/datagram.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace spinloom::wire {
namespace {

constexpr SipKey reference_key = {0x0706050403020100, 0x0f0e0d0c0b0a0908};

TEST(SipHash, ReferenceVectors) {
  std::vector<uint8_t> bytes(63);
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  const auto of = [&](size_t length) { return siphash(reference_key, {bytes.data(), length}); };
  EXPECT_EQ(of(15), 0xa129ca6149be45e5u) << "the paper's appendix A";
  // The authors' code, vectors_sip64, read as little-endian numbers.
  EXPECT_EQ(of(0), 0x726fdb47dd0e0e31u);
  EXPECT_EQ(of(1), 0x74f839c593dc67fdu);
  EXPECT_EQ(of(2), 0x0d6c8009d9a94f5au);
  EXPECT_EQ(of(7), 0xab0200f58b01d137u);
  EXPECT_EQ(of(8), 0x93f5f5799a932462u);
  EXPECT_EQ(of(63), 0x958a324ceb064572u);
}

DatagramHeader some_header() {
  DatagramHeader header;
  header.flags = slmp::syn | slmp::eom;
  header.message_id = 77;
  header.offset = 4096;
  header.source.value = 3;
  header.target.value = 5;
  header.source_epoch = 8;
  header.target_epoch = 9;
  header.sequence = 0xfffffffe;
  header.received = 12;
  header.window = 64;
  header.ordinal = 0x80000001;
  header.echo = 17;
  header.delay_ns = 20'000;
  return header;
}

std::vector<uint8_t> some_datagram(const SipKey& key) {
  std::vector<uint8_t> out = {1, 2, 3};  // datagrams lie one after the other
  const size_t at = begin_datagram(some_header(), out);
  for (uint8_t i = 0; i < 21; ++i) out.push_back(i);
  seal_datagram(key, at, out);
  return {out.begin() + static_cast<int64_t>(at), out.end()};
}

TEST(Datagram, ComesBackAsItWas) {
  const std::vector<uint8_t> bytes = some_datagram(reference_key);
  EXPECT_EQ(bytes.size(), datagram_header_bytes + 21 + datagram_tag_bytes);
  const auto back = open_datagram(reference_key, bytes);
  ASSERT_TRUE(back.ok()) << back.error().message;
  const DatagramHeader wanted = some_header();
  EXPECT_EQ(back->header.flags, wanted.flags);
  EXPECT_EQ(back->header.message_id, wanted.message_id);
  EXPECT_EQ(back->header.offset, wanted.offset);
  EXPECT_EQ(back->header.source, wanted.source);
  EXPECT_EQ(back->header.target, wanted.target);
  EXPECT_EQ(back->header.source_epoch, wanted.source_epoch);
  EXPECT_EQ(back->header.target_epoch, wanted.target_epoch);
  EXPECT_EQ(back->header.sequence, wanted.sequence);
  EXPECT_EQ(back->header.received, wanted.received);
  EXPECT_EQ(back->header.window, wanted.window);
  EXPECT_EQ(back->header.ordinal, wanted.ordinal);
  EXPECT_EQ(back->header.echo, wanted.echo);
  EXPECT_EQ(back->header.delay_ns, wanted.delay_ns);
  ASSERT_EQ(back->body.size(), 21u);
  EXPECT_EQ(back->body[20], 20);
}

TEST(Datagram, EveryFlippedBitIsSeen) {
  const std::vector<uint8_t> bytes = some_datagram(reference_key);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::vector<uint8_t> damaged = bytes;
    damaged[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    EXPECT_FALSE(open_datagram(reference_key, damaged).ok()) << "bit " << bit;
  }
}

TEST(Datagram, EveryCutIsSeen) {
  const std::vector<uint8_t> bytes = some_datagram(reference_key);
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(open_datagram(reference_key, {bytes.data(), length}).ok()) << length;
  }
}

TEST(Datagram, TheEndOfTheBodyMayLieElsewhere) {
  for (const size_t length : {21u, 5000u}) {
    const std::vector<uint8_t> body(length, 9);
    std::vector<uint8_t> whole;
    const size_t at = begin_datagram(some_header(), whole);
    std::vector<uint8_t> parted = whole;
    whole.insert(whole.end(), body.begin(), body.end());
    seal_datagram(reference_key, at, whole);
    seal_datagram(reference_key, 0, parted, body);
    parted.insert(parted.end() - datagram_tag_bytes, body.begin(), body.end());
    EXPECT_EQ(parted, whole) << length << " B";
  }
}

TEST(Datagram, AnotherJobsAreForeign) {
  const auto opened = open_datagram({reference_key.low, reference_key.high ^ 1}, some_datagram(reference_key));
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.error().message.find("of another job"), std::string::npos);
}

}  // namespace
}  // namespace spinloom::wire
