// Leaves of layouts by their shapes, with their bytes and blocks; statistics of blocks.
#include "memory/layout/leaves.hpp"

#include <gtest/gtest.h>

#include "memory/layout/block_statistics.hpp"
#include "memory/layout/normalise.hpp"
#include "memory/layout/testing/random_types.hpp"

namespace spinloom::layout {
namespace {

using test::for_seeds;
using test::must_parse;
using test::random_type;

std::vector<LeafGroup> groups_of(std::string_view type_text) { return leaves_of(normalise(must_parse(type_text))); }

void expect_group(std::string_view type_text, LeafShape shape, int64_t block_bytes, int64_t turns, int64_t blocks) {
  const std::vector<LeafGroup> groups = groups_of(type_text);
  ASSERT_EQ(groups.size(), 1U) << type_text;
  EXPECT_EQ(groups[0].shape, shape) << type_text;
  EXPECT_EQ(groups[0].block_bytes, block_bytes) << type_text;
  EXPECT_EQ(groups[0].nodes, 1) << type_text;
  EXPECT_EQ(groups[0].turns, turns) << type_text;
  EXPECT_EQ(groups[0].blocks, blocks) << type_text;
}

TEST(LeafGroup, TellShapesApart) {
  expect_group("contig(3, int)", LeafShape::single, 12, 1, 1);
  expect_group("vector(3, 1, 2, int)", LeafShape::dense, 4, 1, 3);
  expect_group("vector(3, 1, 5, int)", LeafShape::vector, 4, 1, 3);
  expect_group("contig(4, resized(0B, 4B, vector(3, 1, 100, int)))", LeafShape::across, 4, 4, 12);
  expect_group("contig(4, resized(0B, 2000B, vector(3, 1, 100, int)))", LeafShape::vector, 4, 4, 12);
  expect_group("idxblock(2, [0, 5, 9], int)", LeafShape::list, 8, 1, 3);
  expect_group("idxblock(1, [0, 5, 9], vector(2, 1, 3, int))", LeafShape::vector, 4, 3, 6);
  EXPECT_TRUE(groups_of("contig(0, int)").empty());
}

// The block_bytes of structs are 32 for each window that one struct needs, or its share of 32 where several structs lie
// in one window of 64 B.
TEST(LeafGroup, StructsAreCountedByTheirWindows) {
  expect_group("contig(9, resized(0B, 12B, hindexed([0B x 3, 8B x 4], byte)))", LeafShape::structs, 32 / 5, 1, 9);
  expect_group("contig(9, resized(0B, 32B, struct([(0B, int), (8B, 3, double)])))", LeafShape::structs, 16, 1, 9);
  expect_group("contig(9, resized(0B, 80B, struct([(0B, int), (8B, 3, double)])))", LeafShape::structs, 32, 1, 9);
  expect_group("contig(9, resized(0B, 80B, struct([(0B, int), (40B, 3, double)])))", LeafShape::structs, 64, 1, 9);
  expect_group("hvector(5, 1, 4000B, contig(9, resized(0B, 80B, hindexed([0B x 4, 40B x 24], byte))))",
               LeafShape::structs, 64, 5, 45);
  expect_group("contig(9, resized(0B, 8000B, hindexed([0B x 3, 800B x 8, 1600B x 3, 4000B x 8], byte)))",
               LeafShape::structs, 128, 1, 9);
  EXPECT_EQ(groups_of("contig(9, resized(0B, 8000B, hindexed([0B x 4, 800B x 800], byte)))")[0].shape, LeafShape::runs);
}

// Blocks of the shape `across` count three times if packed rows are a multiple of 4096 B long, once if only of 2048 B.
TEST(LeafGroup, CountBlocksThatCrowdTheirCache) {
  const auto crowded = [](std::string_view type_text) { return groups_of(type_text)[0].crowded_blocks; };
  EXPECT_EQ(crowded("hvector(200, 1, 8B, hvector(512, 8, 4104B, byte))"), 3 * 200 * 512);
  EXPECT_EQ(crowded("hvector(200, 1, 8B, hvector(256, 8, 2056B, byte))"), 200 * 256);
  EXPECT_EQ(crowded("hvector(256, 1, 8B, hvector(200, 8, 4096B, byte))"), 0);
  EXPECT_EQ(crowded("hvector(256, 1, 4096B, hvector(256, 8, 16B, byte))"), 0);  // `dense`
}

TEST(LeafGroup, CountChangesOfLength) {
  const std::vector<LeafGroup> groups = groups_of("hindexed([0B x 4, 10B x 4, 20B x 6, 40B x 4], byte)");
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].shape, LeafShape::runs);
  EXPECT_EQ(groups[0].block_bytes, 4);  // the mean, rounded down
  EXPECT_EQ(groups[0].length_changes, 2);
}

TEST(LeafGroup, HoldEveryByte) {
  for_seeds(500, [](Random& random) {
    const Type type = random_type(random, random.between(0, 4), 500);
    int64_t bytes = 0;
    for (const LeafGroup& each : leaves_of(normalise(type))) bytes += each.bytes;
    EXPECT_EQ(bytes, type.size()) << print(type);
  });
}

TEST(BlockStatistics, AddUp) {
  for_seeds(500, [](Random& random) {
    const Type type = random_type(random, random.between(0, 4), 500);
    const int64_t count = random.between(0, 3);
    const auto blob = Blob::build(type);
    ASSERT_TRUE(blob.ok());
    const auto found = block_statistics(*blob, count);
    ASSERT_TRUE(found.ok());
    const oracle::BlockSummary expected = oracle::summarise(type, count);
    EXPECT_EQ(found->blocks, expected.blocks) << print(type);
    EXPECT_EQ(found->bytes, expected.bytes) << print(type);
    EXPECT_EQ(found->bytes_min, expected.bytes_min) << print(type);
    EXPECT_EQ(found->bytes_max, expected.bytes_max) << print(type);
    BlockStatistics::Bin sum;
    for (size_t exponent = 0; exponent < found->bins.size(); ++exponent) {
      const BlockStatistics::Bin& bin = found->bins[exponent];
      sum.blocks += bin.blocks;
      sum.bytes += bin.bytes;
      EXPECT_GE(bin.bytes, bin.blocks << exponent) << print(type);
    }
    EXPECT_EQ(sum.blocks, found->blocks);
    EXPECT_EQ(sum.bytes, found->bytes);
  });
}

TEST(BlockStatistics, CountForwardBlocks) {
  const auto blob = Blob::build(must_parse("hindexed([0B x 4, 8B x 4, 4B x 2, 100B x 1], byte)"));
  EXPECT_EQ(block_statistics(*blob, 1)->forward_blocks, 2);
}

}  // namespace
}  // namespace spinloom::layout
