// Copies within one array, and refusals; overlaps, blocks and reach against the oracle.
#include "memory/layout/committed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "memory/layout/blocks.hpp"
#include "memory/layout/overlap.hpp"
#include "memory/layout/testing/random_types.hpp"

namespace spinloom::layout {
namespace {

using test::for_seeds;
using test::must_parse;
using test::random_type;

std::vector<std::byte> noise(Random& random, size_t bytes) {
  std::vector<std::byte> out(bytes);
  for (std::byte& byte : out) byte = static_cast<std::byte>(random.below(256));
  return out;
}

TEST(Overlap, NamesTheFirstByteThatIsWrittenTwice) {
  const auto found = find_overlap(must_parse("hvector(3, 4, 3B, byte)"), 1);
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->offset, 3);
  EXPECT_EQ((*found)->first, 3);
  EXPECT_EQ((*found)->second, 4);
}

TEST(Overlap, InterleavedColumnsAreApart) {
  const auto found = find_overlap(must_parse("resized(0B, 8B, vector(1000000, 1, 1000000, double))"), 1000000);
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(found->has_value());  // 10^12 pieces: by arithmetic alone
}

TEST(Overlap, SaysWhatTheOracleSays) {
  for_seeds(2000, [](Random& random) {
    const Type type = random_type(random, random.between(1, 5), 2000);
    const int64_t count = random.between(0, 4);
    const auto found = find_overlap(type, count);
    const auto expected = oracle::overlaps(type, count);
    if (!expected.ok()) return;
    ASSERT_TRUE(found.ok()) << print(type) << ": " << found.error().message;
    ASSERT_EQ(found->has_value(), *expected) << count << " of " << print(type);
    if (!found->has_value()) return;
    const std::vector<int64_t> map = test::byte_map(type, count);
    EXPECT_EQ(map[static_cast<size_t>((*found)->first)], (*found)->offset) << print(type);
    EXPECT_EQ(map[static_cast<size_t>((*found)->second)], (*found)->offset) << print(type);
  });
}

TEST(Committed, CopiesWithinOneArray) {
  Random random(1, "within");
  std::vector<std::byte> memory = noise(random, 100000);
  std::vector<std::byte> expected = memory;
  const auto forward = Committed::commit(must_parse("contig(90000, byte)"));
  const auto shifted = Committed::commit(must_parse("hindexed([5000Bx90000], byte)"));
  std::copy_n(memory.begin(), 90000, expected.begin() + 5000);
  ASSERT_TRUE(copy({&*forward, 1, memory.data()}, {&*shifted, 1, memory.data()}).ok());
  EXPECT_EQ(memory, expected);
}

// Rules: LAY-48.
TEST(Committed, RefusesToWriteAByteTwice) {
  const auto layout = Committed::commit(must_parse("hvector(2, 1, 0B, int)"));
  std::vector<std::byte> memory(8);
  const std::vector<std::byte> packed(8, std::byte{1});
  const Status status = layout->unpack(1, memory.data(), {0, 8}, packed);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("packed bytes 0 and 4 both land at offset 0"), std::string::npos);
  EXPECT_EQ(memory, std::vector<std::byte>(8));
}

TEST(Blocks, AreThoseOfTheOracle) {
  for_seeds(500, [](Random& random) {
    const Type type = random_type(random, random.between(0, 4), 500);
    const int64_t count = random.between(0, 4);
    std::vector<std::pair<int64_t, int64_t>> expected;
    oracle::for_each_block(type, count,
                           [&](const oracle::Block& block) { expected.emplace_back(block.offset, block.bytes); });
    std::vector<std::pair<int64_t, int64_t>> found;
    const auto layout = Committed::commit(type);
    ASSERT_TRUE(layout.ok());
    const Status status = for_each_block(layout->blob(), count, [&](const Piece& block) {
      found.emplace_back(block.offset, block.bytes);
      return true;
    });
    ASSERT_TRUE(status.ok());
    EXPECT_EQ(found, expected) << count << " of " << print(type);
  });
}

TEST(Committed, ReachIsThatOfTheOracle) {
  for_seeds(500, [](Random& random) {
    const Type type = random_type(random, random.between(0, 4), 500);
    const int64_t count = random.between(0, 4);
    const auto layout = Committed::commit(type);
    ASSERT_TRUE(layout.ok());
    const oracle::Reach expected = oracle::reach(type, count);
    const auto reach = layout->reach(count);
    ASSERT_TRUE(reach.ok());
    EXPECT_EQ(reach->last - reach->first, expected.last - expected.first) << print(type);
    if (expected.last > expected.first) {
      EXPECT_EQ(reach->first, expected.first) << print(type);
    }
  });
}

}  // namespace
}  // namespace spinloom::layout
