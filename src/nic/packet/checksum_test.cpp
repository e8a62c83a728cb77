// The Internet checksum against RFC 1071's own words and numbers, and the incremental update of RFC 1624.
#include "nic/packet/checksum.hpp"

#include <gtest/gtest.h>

#include "base/byte_order.hpp"
#include "base/testing/seeds.hpp"
#include "nic/packet/testing/random_frames.hpp"

namespace spinloom::packet {
namespace {

// The definition: 16-bit words, a last odd byte padded with zero, the carries added back in, the complement.
uint16_t by_definition(Bytes bytes) {
  uint64_t sum = 0;
  for (size_t i = 0; i < bytes.size(); ++i) sum += uint64_t{bytes[i]} << (i % 2 == 0 ? 8 : 0);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

TEST(Checksum, IsThatOfTheExampleInRfc1071) {
  // Section 3: the words 0001 f203 f4f5 f6f7 add up to ddf0 + 2 = ddf2; the field is its complement.
  const FrameBytes bytes{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
  EXPECT_EQ(checksum(bytes), 0xffff - 0xddf2);
}

TEST(Checksum, OfNothingIsAllOnes) { EXPECT_EQ(checksum({}), 0xffff); }

TEST(Checksum, EqualsTheDefinitionAtAnyLengthAndPlace) {
  for_seeds(200, [](Random& random) {
    FrameBytes bytes = test::random_bytes(random, random.below(random.chance(1, 10) ? 70000 : 300));
    if (random.chance(1, 4)) std::fill(bytes.begin(), bytes.end(), 0xff);
    const Bytes part = Bytes(bytes).subspan(random.below(bytes.size() + 1));
    const test::Guarded guarded(part);
    EXPECT_EQ(checksum(guarded.bytes()), by_definition(part)) << part.size() << " bytes";
  });
}

TEST(Checksum, OfPartsIsThatOfTheWhole) {
  for_seeds(100, [](Random& random) {
    const FrameBytes bytes = test::random_bytes(random, 400);
    const size_t cut = 2 * random.below(200);
    Checksum sum;
    sum.add(Bytes(bytes).first(cut)).add(load_be<uint16_t>(&bytes[cut])).add(Bytes(bytes).subspan(cut + 2));
    EXPECT_EQ(sum.finish(), checksum(bytes)) << "cut at " << cut;
  });
}

TEST(Checksum, OfAMessageWithItsFieldIsZero) {
  for_seeds(100, [](Random& random) {
    FrameBytes bytes = test::random_bytes(random, 2 + 2 * random.below(100));
    store_be(bytes.data(), uint16_t{0});
    store_be(bytes.data(), checksum(bytes));
    EXPECT_EQ(checksum(bytes), 0);
  });
}

TEST(Checksum, UpdateIsTheSumAgain) {
  // RFC 1624, section 4: HC = dd2f, the word 5555 becomes 3285, HC' = 0000 by equation 3 (equation 2 gave ffff).
  EXPECT_EQ(update_checksum(0xdd2f, 0x5555, 0x3285), 0x0000);
  for_seeds(300, [](Random& random) {
    FrameBytes bytes = test::random_bytes(random, 40);
    const uint16_t sum = checksum(bytes);
    const auto before = load_be<uint16_t>(&bytes[6]);
    const auto after = static_cast<uint16_t>(random.next());
    store_be(&bytes[6], after);
    EXPECT_EQ(update_checksum(sum, before, after), checksum(bytes));
  });
}

}  // namespace
}  // namespace spinloom::packet
