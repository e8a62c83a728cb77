// The specification itself: small cases by hand, and that compare() finds what is wrong.
#include <gtest/gtest.h>

#include <algorithm>

#include "memory/layout/testing/random_types.hpp"

namespace spinloom::layout {
namespace {

// Rules: LAY-2, LAY-3, LAY-5, LAY-7, LAY-10, LAY-12, LAY-13, LAY-16, LAY-43.
TEST(Oracle, TypeMapsByHand) {
  const auto map = [](const char* source, int64_t count) {
    std::vector<std::pair<int64_t, int64_t>> entries;
    oracle::for_each_primitive_of(test::must_parse(source), count,
                                  [&](int64_t offset, int64_t bytes) { entries.emplace_back(offset, bytes); });
    return entries;
  };
  using Map = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(map("vector(2, 2, 3, int)", 1), (Map{{0, 4}, {4, 4}, {12, 4}, {16, 4}}));
  EXPECT_EQ(map("vector(2, 1, -2, short)", 2), (Map{{0, 2}, {-4, 2}, {6, 2}, {2, 2}}));
  EXPECT_EQ(map("struct([(8B, 2, char), (0B, int)])", 1), (Map{{8, 1}, {9, 1}, {0, 4}}));
  EXPECT_EQ(map("resized(-4B, 16B, int)", 2), (Map{{0, 4}, {16, 4}}));
  EXPECT_EQ(map("indexed([2 x 1, 0 x 2], resized(0B, 8B, short))", 1), (Map{{16, 2}, {0, 2}, {8, 2}}));
  EXPECT_EQ(map("hidxblock(1, [3B, 0B], char)", 1), (Map{{3, 1}, {0, 1}}));
  EXPECT_EQ(map("subarray([3, 2], [2, 1], [1, 1], C, int)", 1), (Map{{12, 4}, {20, 4}}));
}

// Rules: LAY-44.
TEST(Oracle, BlocksMergeInTypeMapOrderOnly) {
  // The blocks are adjacent in memory, but listed in falling order: they stay two blocks.
  EXPECT_EQ(oracle::summarise(test::must_parse("idxblock(1, [1, 0], int)"), 1).blocks, 2);
  const auto merged = oracle::summarise(test::must_parse("idxblock(1, [0, 1, 5], int)"), 1);
  EXPECT_EQ(merged.blocks, 2);
  EXPECT_EQ(merged.bytes_min, 4);
  EXPECT_EQ(merged.bytes_max, 8);
  // Blocks also merge across elements.
  EXPECT_EQ(oracle::summarise(test::must_parse("contig(3, int)"), 7).blocks, 1);
}

TEST(Oracle, RegionsCountCutsInsideBlocks) {
  // 3 blocks of 10 B in packets of 8 B: cuts at 8, 16, 24 all fall inside a block.
  const auto inside = oracle::regions_per_packet(test::must_parse("vector(3, 10, 20, byte)"), 1, 8);
  EXPECT_EQ(inside.regions, 6);
  EXPECT_EQ(inside.packets, 4);
  // 4 blocks of 8 B in packets of 8 B: cuts fall between blocks.
  const auto between = oracle::regions_per_packet(test::must_parse("vector(4, 8, 20, byte)"), 1, 8);
  EXPECT_EQ(between.regions, 4);
  EXPECT_EQ(between.packets, 4);
}

class Compare : public ::testing::Test {
 protected:
  // 3 blocks of 8 B, 24 B apart, in a buffer with 16 B guards; the second element follows one extent on.
  const Type type = test::must_parse("resized(0B, 72B, vector(3, 2, 6, int))");
  static constexpr int64_t count = 2;
  static constexpr int64_t base = 16;
  std::vector<std::byte> packed = std::vector<std::byte>(48);
  std::vector<std::byte> before = std::vector<std::byte>(16 + 72 + 56 + 16, std::byte{0xee});
  std::vector<std::byte> destination;

  void SetUp() override {
    for (size_t i = 0; i < packed.size(); ++i) packed[i] = static_cast<std::byte>(i + 1);
    destination = before;
    ASSERT_TRUE(oracle::unpack(type, count, packed, destination.data() + base));
    ASSERT_TRUE(compare());
  }
  [[nodiscard]] Status compare() const { return oracle::compare(type, count, packed, destination, base, before); }
  void expect_mismatch(const char* message) const {
    const auto status = compare();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::mismatch);
    EXPECT_NE(status.error().message.find(message), std::string::npos) << status.error().message;
  }
};

TEST_F(Compare, FindsAFlippedByteOfABlock) {
  destination[base + 72 + 27] ^= std::byte{1};
  expect_mismatch("destination offset 99 holds 37, expected 36: byte 3 of block 4 (8 B at offset 96, packed byte 35)");
}

TEST_F(Compare, FindsASkippedBlock) {
  std::fill_n(destination.begin() + base + 24, 8, std::byte{0xee});
  expect_mismatch("destination offset 24 holds 238, expected 9: byte 0 of block 1");
}

TEST_F(Compare, FindsAStrayByteInAGap) {
  destination[base + 10] = std::byte{0};
  expect_mismatch("destination offset 10 holds 0, expected 238: a gap between blocks");
}

TEST_F(Compare, FindsAStrayByteInEachGuard) {
  destination[3] = std::byte{0};
  expect_mismatch("destination offset -13 holds 0, expected 238: a guard outside the type");
  destination[3] = std::byte{0xee};
  destination.back() = std::byte{1};
  expect_mismatch("a guard outside the type");
}

TEST_F(Compare, RefusesADestinationThatIsTooSmall) {
  destination.resize(100);
  before.resize(100);
  const auto status = compare();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::invalid);
}

TEST(Oracle, LastWriterWinsWhereATypeOverlapsItself) {
  const Type type = test::must_parse("hvector(3, 1, 2B, int)");
  std::vector<std::byte> packed(12);
  for (size_t i = 0; i < packed.size(); ++i) packed[i] = static_cast<std::byte>(i);
  std::vector<std::byte> memory(8);
  ASSERT_TRUE(oracle::unpack(type, 1, packed, memory.data()));
  const std::vector<int> expected = {0, 1, 4, 5, 8, 9, 10, 11};
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(std::to_integer<int>(memory[i]), expected[i]);
}

TEST(Oracle, OverlapsIsExact) {
  const auto overlaps = [](const char* source, int64_t count) {
    return *oracle::overlaps(test::must_parse(source), count);
  };
  EXPECT_FALSE(overlaps("vector(4, 2, 2, int)", 3));
  EXPECT_TRUE(overlaps("hvector(3, 1, 3B, int)", 1));
  EXPECT_FALSE(overlaps("hvector(3, 1, 4B, int)", 1));
  EXPECT_FALSE(overlaps("idxblock(1, [5, 0, 3], int)", 1));
  EXPECT_TRUE(overlaps("idxblock(1, [5, 0, 3, 5], int)", 1));
  // The second element starts inside the first. Interleaved pieces do not overlap; shifted pieces do.
  EXPECT_FALSE(overlaps("resized(0B, 4B, vector(3, 1, 2, int))", 2));
  EXPECT_TRUE(overlaps("resized(0B, 4B, vector(3, 1, 2, int))", 3));
  // A true extent of 2^40 B.
  EXPECT_FALSE(overlaps("hindexed([1099511627776B x 4, 0B x 4], double)", 1));
  test::for_seeds(1000, [](Random& random) {
    const Type type = test::random_type(random, random.between(0, 4), 200);
    auto map = test::byte_map(type, 2);
    std::sort(map.begin(), map.end());
    const bool twice = std::adjacent_find(map.begin(), map.end()) != map.end();
    EXPECT_EQ(*oracle::overlaps(type, 2), twice) << print(type);
  });
}

TEST(Oracle, PackAndUnpackAreInverse) {
  test::for_seeds(1000, [](Random& random) {
    const Type type = test::random_type(random, random.between(0, 5), 300);
    if (*oracle::overlaps(type, 2)) return;
    const oracle::Reach reach = oracle::reach(type, 2);
    std::vector<std::byte> memory(static_cast<size_t>(reach.last - reach.first));
    std::vector<std::byte> packed(static_cast<size_t>(2 * type.size()));
    for (std::byte& byte : packed) byte = static_cast<std::byte>(random.below(256));
    ASSERT_TRUE(oracle::unpack(type, 2, packed, memory.data() - reach.first));
    std::vector<std::byte> again(packed.size());
    ASSERT_TRUE(oracle::pack(type, 2, memory.data() - reach.first, again));
    EXPECT_EQ(again, packed);
  });
}

}  // namespace
}  // namespace spinloom::layout
