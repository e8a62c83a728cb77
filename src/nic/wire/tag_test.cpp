// Tags against their definition, written plainly: eight SipHash states, one word each in turn, and one over all.
#include "nic/wire/tag.hpp"

#include <gtest/gtest.h>

#include <array>

#include "base/byte_order.hpp"
#include "base/random.hpp"
#include "nic/wire/sip_round.hpp"

namespace spinloom::wire {
namespace {

uint64_t plain_tag(const SipKey& key, std::vector<uint8_t> bytes) {
  if (bytes.size() < lanes_bytes_min) return siphash(key, bytes);
  const uint64_t length = bytes.size();
  bytes.resize((bytes.size() + 63) / 64 * 64);
  std::array<SipState<uint64_t>, 8> lanes;
  for (uint64_t lane = 0; lane < 8; ++lane) lanes[lane] = begin_sip(key, 0x656e616c00 + lane);  // "lane"
  for (size_t i = 0; i < bytes.size() / 8; ++i) lanes[i % 8].absorb(load_le<uint64_t>(&bytes[8 * i]));
  SipState<uint64_t> whole = begin_sip(key, 0x656c6f687700);  // "whole"
  for (const auto& lane : lanes) {
    for (const uint64_t word : {lane.v0, lane.v1, lane.v2, lane.v3}) whole.absorb(word);
  }
  whole.absorb(length);
  return end_sip(whole);
}

TEST(Tag, IsWhatItsDefinitionSays) {
  Random random(1, "tags");
  const SipKey key{random.next(), random.next()};
  for (size_t length = 0; length < 2500; length = length < 700 ? length + 1 : length + 1 + random.below(100)) {
    std::vector<uint8_t> bytes(length);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.next());
    const uint64_t wanted = plain_tag(key, bytes);
    for (int i = 0; i < 5; ++i) {
      const std::span<const uint8_t> all(bytes);
      const size_t parted = i == 0 ? length : random.below(length + 1);
      ASSERT_EQ(tag_of(key, all.first(parted), all.subspan(parted)), wanted) << length << " B, parted at " << parted;
    }
  }
}

TEST(Tag, ZerosAtTheEndCount) {
  std::vector<uint8_t> bytes(lanes_bytes_min + 10);
  const uint64_t tag = tag_of({1, 2}, bytes, {});
  bytes.push_back(0);
  EXPECT_NE(tag_of({1, 2}, bytes, {}), tag);
}

TEST(Tag, EveryBitOfALongInputCounts) {
  std::vector<uint8_t> bytes(lanes_bytes_min + 9, 0x5a);
  const uint64_t tag = tag_of({1, 2}, bytes, {});
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    EXPECT_NE(tag_of({1, 2}, bytes, {}), tag) << "bit " << bit;
    bytes[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
  }
}

TEST(Tag, LongInputsHaveNoTagOfSipHash) {
  const std::vector<uint8_t> bytes(lanes_bytes_min, 3);
  EXPECT_NE(tag_of({1, 2}, bytes, {}), siphash({1, 2}, bytes));
  EXPECT_EQ(tag_of({1, 2}, {bytes.data(), lanes_bytes_min - 1}, {}),
            siphash({1, 2}, {bytes.data(), lanes_bytes_min - 1}));
}

}  // namespace
}  // namespace spinloom::wire
