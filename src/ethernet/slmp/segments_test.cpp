// Messages in segments: their alignment, the flags of each mode, and the largest message.
#include "ethernet/slmp/segments.hpp"

#include <gtest/gtest.h>

#include "base/testing/seeds.hpp"

namespace spinloom::slmp {
namespace {

// payload = floor(1462 / alignment) * alignment: 22 * 64 = 1408, 365 * 4 = 1460.
// Rules: SLMP-10, SLMP-11.
TEST(SlmpSegments, PayloadIsRoundedDownToTheAlignment) {
  EXPECT_EQ(payload_of(64).value(), 1408);
  EXPECT_EQ(payload_of(4).value(), 1460);
  EXPECT_EQ(payload_of(1).value(), 1462);
  EXPECT_EQ(payload_of(1462).value(), 1462);
  for (const int64_t wrong : {0, -4, 1463}) EXPECT_FALSE(payload_of(wrong).ok());
}

// 3000 B in packets of 1408 B: 1408 + 1408 + 184.
// Rules: SLMP-6, SLMP-21, SLMP-22, SLMP-23.
TEST(SlmpSegments, EachModePutsSynWhereThePaperSays) {
  const auto flags = [](Mode mode) {
    const Segments cut{7, 3000, 1408, mode};
    EXPECT_EQ(cut.count(), 3);
    EXPECT_EQ(cut.length(2), 184);
    EXPECT_EQ(cut.header(1).offset, 1408);
    return std::array{cut.header(0).flags, cut.header(1).flags, cut.header(2).flags};
  };
  EXPECT_EQ(flags(Mode::none), (std::array<uint16_t, 3>{0, 0, eom}));
  EXPECT_EQ(flags(Mode::message), (std::array<uint16_t, 3>{syn, 0, eom | syn}));
  EXPECT_EQ(flags(Mode::segment), (std::array<uint16_t, 3>{syn, syn, eom | syn}));
}

// Rules: SLMP-13.
TEST(SlmpSegments, AMessageOfOnePacketBeginsAndEndsWithIt) {
  for (const uint64_t bytes : {0, 1, 1408}) {
    const Segments cut{7, bytes, 1408, Mode::message};
    EXPECT_EQ(cut.count(), 1);
    EXPECT_EQ(cut.length(0), bytes);
    EXPECT_EQ(cut.header(0).flags, eom | syn);
  }
}

// Rules: SLMP-6, SLMP-12.
TEST(SlmpSegments, CoverTheMessageOnce) {
  for_seeds(300, [](Random& random) {
    const Segments cut{1, random.below(100000), static_cast<uint32_t>(1 + random.below(payload_bytes_max)),
                       Mode::segment};
    uint64_t covered = 0;
    for (uint32_t i = 0; i < cut.count(); ++i) {
      ASSERT_EQ(cut.offset(i), covered);
      ASSERT_EQ(cut.header(i).has(eom), i + 1 == cut.count());
      covered += cut.length(i);
    }
    ASSERT_EQ(covered, cut.message_bytes);
  });
}

// Rules: SLMP-8.
TEST(SlmpSegments, FourGibibytesAreTheMost) {
  Segments cut{1, message_bytes_max, 1408, Mode::segment};
  ASSERT_TRUE(check(cut).ok());
  EXPECT_EQ(uint64_t{cut.header(cut.count() - 1).offset} + cut.length(cut.count() - 1), message_bytes_max);
  ++cut.message_bytes;
  EXPECT_EQ(check(cut).error().code, Code::overflow);
}

}  // namespace
}  // namespace spinloom::slmp
