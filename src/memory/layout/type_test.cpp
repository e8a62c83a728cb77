// Sizes and bounds of each constructor, as the MPI standard defines them.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/limits.hpp"
#include "memory/layout/testing/random_types.hpp"

namespace spinloom::layout {
namespace {

struct Expected {
  const char* source;
  int64_t size, lb, extent, true_lb, true_extent;
};

class TypeBounds : public ::testing::TestWithParam<Expected> {};

// Rules: LAY-1, LAY-2, LAY-4, LAY-5, LAY-7, LAY-9, LAY-10, LAY-20, LAY-32, LAY-33, LAY-34, LAY-36, LAY-37, LAY-38.
// Rules: LAY-40, LAY-41, LAY-42.
TEST_P(TypeBounds, AreTheStandards) {
  const Expected& expected = GetParam();
  const Type type = test::must_parse(expected.source);
  EXPECT_EQ(type.size(), expected.size);
  EXPECT_EQ(type.lb(), expected.lb);
  EXPECT_EQ(type.extent(), expected.extent);
  EXPECT_EQ(type.true_lb(), expected.true_lb);
  EXPECT_EQ(type.true_extent(), expected.true_extent);
}

INSTANTIATE_TEST_SUITE_P(
    Constructors, TypeBounds,
    ::testing::Values(Expected{"double", 8, 0, 8, 0, 8}, Expected{"contig(5, int)", 20, 0, 20, 0, 20},
                      Expected{"contig(0, int)", 0, 0, 0, 0, 0}, Expected{"vector(3, 2, 4, int)", 24, 0, 40, 0, 40},
                      // Two blocks of 3 ints going down from 0: the last begins at -16.
                      Expected{"vector(2, 3, -4, int)", 24, -16, 28, -16, 28},
                      Expected{"hvector(2, 1, -6144B, contig(32, contig(6, float)))", 1536, -6144, 6912, -6144, 6912},
                      Expected{"indexed([4 x 1, 0 x 2, -3 x 0], double)", 24, 0, 40, 0, 40},
                      Expected{"hindexed([4B x 1, 100B x 2], int)", 12, 4, 104, 4, 104},
                      Expected{"idxblock(2, [3, 0], int)", 16, 0, 20, 0, 20},
                      Expected{"hidxblock(1, [9B, -7B], short)", 4, -7, 18, -7, 18},
                      // No padding at the end: the extent is ub - lb.
                      Expected{"struct([(0B, double), (8B, char)])", 9, 0, 9, 0, 9},
                      Expected{"resized(-4B, 32B, contig(2, int))", 8, -4, 32, 0, 8},
                      // Elements one extent of 16 apart, the first one's marker at 0.
                      Expected{"contig(3, resized(0B, 16B, int))", 12, 0, 48, 0, 36},
                      // A marker anywhere hides the bounds of unmarked members.
                      Expected{"struct([(0B, resized(0B, 4B, int)), (100B, double)])", 12, 0, 4, 0, 108},
                      Expected{"resized(0B, -8B, double)", 8, 0, -8, 0, 8},
                      Expected{"contig(3, resized(0B, -8B, double))", 24, -16, 8, -16, 24},
                      Expected{"subarray([4, 5], [2, 3], [1, 2], C, int)", 24, 0, 80, 28, 32},
                      Expected{"subarray([4, 5], [2, 3], [1, 2], F, int)", 24, 0, 80, 36, 40},
                      Expected{"struct([])", 0, 0, 0, 0, 0},
                      Expected{"resized(-8B, 64B, contig(0, int))", 0, -8, 64, 0, 0},
                      Expected{"contig(2, resized(-8B, 64B, contig(0, int)))", 0, -8, 128, 0, 0}));

// Rules: LAY-17, LAY-18.
TEST(Type, SubarrayOrderDecidesWhichIndexIsFastest) {
  const auto c = test::byte_map(test::must_parse("subarray([2, 3], [2, 2], [0, 1], C, byte)"), 1);
  const auto fortran = test::byte_map(test::must_parse("subarray([2, 3], [2, 2], [0, 1], F, byte)"), 1);
  EXPECT_EQ(c, (std::vector<int64_t>{1, 2, 4, 5}));
  EXPECT_EQ(fortran, (std::vector<int64_t>{2, 3, 4, 5}));
}

// Rules: LAY-21, LAY-54, LAY-55.
TEST(Type, RefusesWhatMpiRefuses) {
  const Type element = *primitive("int");
  EXPECT_EQ(contiguous(-1, element).error().code, Code::invalid);
  EXPECT_EQ(vector(2, -1, 3, element).error().code, Code::invalid);
  EXPECT_EQ(indexed(std::vector<int64_t>{0, 1}, {1}, element).error().code, Code::invalid);
  EXPECT_EQ(indexed(std::vector<int64_t>{0}, {-1}, element).error().code, Code::invalid);
  EXPECT_EQ(structure(std::vector<int64_t>{0}, {1}, {}).error().code, Code::invalid);
  EXPECT_EQ(subarray(std::vector<int64_t>{4}, std::vector<int64_t>{5}, std::vector<int64_t>{0}, Order::c, element)
                .error()
                .code,
            Code::invalid);
  EXPECT_EQ(subarray(std::vector<int64_t>{4}, std::vector<int64_t>{2}, std::vector<int64_t>{3}, Order::c, element)
                .error()
                .code,
            Code::invalid);
  EXPECT_EQ(primitive("quux").error().code, Code::invalid);
}

TEST(Type, NamesOfNumpySuggestThePrimitiveOfTheirSize) {
  for (const char* const name : {"float64", "np_float64", "np.float64"}) {
    const auto type = primitive(name);
    ASSERT_FALSE(type.ok()) << name;
    EXPECT_NE(type.error().message.find("did you mean 'double'?"), std::string::npos) << type.error().message;
  }
}

// Rules: LAY-57.
TEST(Type, OverflowIsAnErrorWithItsOperands) {
  const Type element = *primitive("double");
  for (const auto& made :
       {contiguous(INT64_MAX / 4, element), vector(3, 1, INT64_MAX / 2, element),
        hvector(3, 1, INT64_MAX / 2 + 1, element), hvector(2, 1, INT64_MIN, element),
        hindexed(std::vector<int64_t>{INT64_MAX}, {1}, element),
        hindexed(std::vector<int64_t>{INT64_MAX - 8, INT64_MIN}, {1, 1}, element), resized(INT64_MAX, 8, element)}) {
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, Code::overflow);
  }
  EXPECT_NE(contiguous(INT64_MAX / 4, element).error().message.find("2305843009213693951 * 8"), std::string::npos);
}

// Rules: LAY-67.
TEST(Type, DepthIsLimited) {
  Type type = *primitive("int");
  for (int64_t level = 0; level < limits::type_depth_max; ++level) type = *contiguous(1, type);
  const auto deeper = contiguous(1, type);
  ASSERT_FALSE(deeper);
  EXPECT_NE(deeper.error().message.find("type_depth_max"), std::string::npos);
}

// Each level has the entries of the one below twice, and two of its own.
// Rules: LAY-68.
TEST(Type, ListEntriesOfAWholeTypeAreLimited) {
  const int64_t first = limits::type_list_max >> 7;
  Type type = *indexed_block(1, *IndexList::range(0, 2, first), *primitive("byte"));
  for (int level = 0; level < 6; ++level) type = *structure(std::vector<int64_t>{0, 1}, {1, 1}, {type, type});
  const auto more = structure(std::vector<int64_t>{0, 1}, {1, 1}, {type, type});
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Code::overflow);
  EXPECT_NE(more.error().message.find("type_list_max"), std::string::npos) << more.error().message;
  EXPECT_EQ(IndexList::range(0, 1, limits::type_list_max + 1).error().code, Code::overflow);
}

// Rules: LAY-61.
TEST(IndexList, RandIsTheSameShuffleForEveryBound) {
  // The shuffle has a sparse form above 2^22. The first entries of both forms must be distinct and in range.
  for (const int64_t bound : {int64_t{50}, int64_t{834917}, int64_t{1} << 40}) {
    const auto list = IndexList::random(3, bound, 50);
    ASSERT_TRUE(list);
    std::vector<int64_t> values;
    for (int64_t i = 0; i < list->size(); ++i) values.push_back((*list)[i]);
    std::sort(values.begin(), values.end());
    EXPECT_EQ(std::unique(values.begin(), values.end()), values.end());
    EXPECT_GE(values.front(), 0);
    EXPECT_LT(values.back(), bound);
  }
  EXPECT_EQ(IndexList::random(1, 3, 4).error().code, Code::invalid);
  EXPECT_EQ(IndexList::random(1, INT64_MAX, int64_t{1} << 40).error().code, Code::overflow);
}

// Rules: LAY-61.
TEST(IndexList, RandIsForwardFisherYatesOfTheBaseGenerator) {
  // Repeats the definition: swaps entry i with entry i + below(bound - i).
  Random random(42, "layout.rand");
  std::vector<int64_t> entries = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  for (size_t i = 0; i < 4; ++i) std::swap(entries[i], entries[i + random.below(10 - i)]);
  const auto list = IndexList::random(42, 10, 4);
  ASSERT_TRUE(list);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ((*list)[i], entries[static_cast<size_t>(i)]);
}

TEST(Type, ListsWhoseElementsDoNotFitAreAnError) {
  const auto type = indexed(std::vector<int64_t>{0, 1}, {INT64_MAX, INT64_MAX}, *contiguous(0, *primitive("int")));
  ASSERT_FALSE(type);
  EXPECT_EQ(type.error().code, Code::overflow);
}

}  // namespace
}  // namespace spinloom::layout
