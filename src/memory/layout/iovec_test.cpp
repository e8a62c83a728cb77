// The exported list against the oracle's blocks.
#include "memory/layout/iovec.hpp"

#include <gtest/gtest.h>

#include "memory/layout/testing/random_types.hpp"

namespace spinloom::layout {
namespace {

std::vector<Piece> blocks_of(const Type& type, int64_t count) {
  std::vector<Piece> blocks;
  oracle::for_each_block(type, count,
                         [&](const oracle::Block& block) { blocks.push_back({block.offset, block.bytes}); });
  return blocks;
}

std::string print_list(const std::vector<Piece>& list) {
  std::string out;
  for (const Piece& piece : list) out += text(piece.offset, "+", piece.bytes, " ");
  return out;
}

// Rules: LAY-11.
TEST(Iovec, ListsBlocksInTheOrderOfTheTypeMap) {
  const Type type = test::must_parse("hindexed([24B x 8, 0B x 4, 4B x 4], byte)");
  const Blob blob = Blob::build(type).value();
  EXPECT_EQ(print_list(export_iovec(blob, 1).value()), "24+8 0+8 ");
  EXPECT_EQ(export_iovec(blob, 0).value().size(), 0u);
}

TEST(Iovec, MergesElementsThatTouch) {
  const Blob blob = Blob::build(test::must_parse("contig(3, int)")).value();
  EXPECT_EQ(print_list(export_iovec(blob, 5).value()), "0+60 ");
}

TEST(Iovec, NamesTheLimit) {
  const Blob blob = Blob::build(test::must_parse("vector(4, 1, 2, int)")).value();
  EXPECT_EQ(export_iovec(blob, 1, {4}).value().size(), 4u);
  const auto list = export_iovec(blob, 1, {3});
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().code, Code::exhausted);
  EXPECT_NE(list.error().message.find("entries_max"), std::string::npos) << list.error().message;
}

TEST(Iovec, EqualsTheOraclesBlocks) {
  test::for_seeds(1500, [](Random& random) {
    const Type type = test::random_type(random, random.between(0, 5), 300);
    const int64_t count = random.between(0, 4);
    const auto list = export_iovec(Blob::build(type).value(), count);
    ASSERT_TRUE(list) << print(type) << ": " << list.error().message;
    EXPECT_EQ(print_list(*list), print_list(blocks_of(type, count))) << print(type) << " x " << count;
  });
}

}  // namespace
}  // namespace spinloom::layout
