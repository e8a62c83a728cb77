// Tests of distributed arrays: the owners of elements, bounds, refusals.
#include <gtest/gtest.h>

#include <set>

#include "memory/layout/blob.hpp"
#include "memory/layout/testing/random_types.hpp"

namespace spinloom::layout {
namespace {

// First bytes of the elements of a type of bytes, in packed order.
std::string map_of(std::string_view source) {
  std::string out;
  for (const int64_t offset : test::byte_map(test::must_parse(source), 1)) out += text(offset, " ");
  return out;
}

// Rules: LAY-22, LAY-23, LAY-24, LAY-63.
TEST(Darray, DealsBlocksOfADimension) {
  EXPECT_EQ(map_of("darray(3, 0, [7], [block], [default], [3], C, byte)"), "0 1 2 ");
  EXPECT_EQ(map_of("darray(3, 1, [7], [block], [default], [3], C, byte)"), "3 4 5 ");
  EXPECT_EQ(map_of("darray(3, 2, [7], [block], [default], [3], C, byte)"), "6 ");
  EXPECT_EQ(map_of("darray(3, 2, [7], [block], [5], [3], C, byte)"), "");
  EXPECT_EQ(map_of("darray(2, 1, [7], [cyclic], [default], [2], C, byte)"), "1 3 5 ");
  EXPECT_EQ(map_of("darray(2, 1, [11], [cyclic], [2], [2], C, byte)"), "2 3 6 7 10 ");
}

// The grid is row-major whatever the order of the array: rank 1 of 2 x 2 is (0, 1).
// Rules: LAY-26, LAY-27.
TEST(Darray, OrderIsOfTheArrayNotOfTheGrid) {
  const char* c = "darray(4, 1, [4, 4], [block, cyclic], [default, default], [2, 2], C, byte)";
  const char* f = "darray(4, 1, [4, 4], [block, cyclic], [default, default], [2, 2], F, byte)";
  EXPECT_EQ(map_of(c), "1 3 5 7 ");      // rows 0 1, columns 1 3, row * 4 + column
  EXPECT_EQ(map_of(f), "4 5 12 13 ");    // the first index is the fast one: row + column * 4
}

// Rules: LAY-30.
TEST(Darray, HasTheBoundsOfTheWholeArray) {
  const Type part = test::must_parse("darray(3, 1, [7], [block], [default], [3], C, double)");
  EXPECT_EQ(part.lb(), 0);
  EXPECT_EQ(part.extent(), 56);
  EXPECT_EQ(part.true_lb(), 24);
  EXPECT_EQ(part.true_extent(), 24);
  const Type nothing = test::must_parse("darray(3, 2, [7], [block], [5], [3], C, double)");
  EXPECT_EQ(nothing.size(), 0);
  EXPECT_EQ(nothing.extent(), 56);
  EXPECT_EQ(nothing.true_extent(), 0);
}

// Whatever the distribution, the parts of all ranks are the array, each element once.
// Rules: LAY-25, LAY-28.
TEST(Darray, PartsOfAllRanksAreTheArray) {
  test::for_seeds(300, [](Random& random) {
    DarrayArguments given;
    std::vector<int64_t> sizes;
    std::vector<int64_t> grid;
    int64_t elements = 1;
    for (int64_t d = random.between(1, 3); d > 0; --d) {
      const auto distribution = static_cast<Distribution>(random.below(3));
      sizes.push_back(random.between(1, 9));
      grid.push_back(distribution == Distribution::none ? 1 : random.between(1, 4));
      given.distributions.push_back(distribution);
      given.distribution_arguments.push_back(
          random.chance(1, 2) || distribution == Distribution::block ? darray_default : random.between(1, 4));
      given.processes *= grid.back();
      elements *= sizes.back();
    }
    given.sizes = sizes;
    given.grid = grid;
    given.order = random.chance(1, 2) ? Order::c : Order::fortran;
    std::set<int64_t> all;
    for (given.rank = 0; given.rank < given.processes; ++given.rank) {
      const Type part = darray(given, *primitive("byte")).value();
      const auto map = test::byte_map(part, 1);
      EXPECT_TRUE(std::is_sorted(map.begin(), map.end())) << print(part);
      for (const int64_t offset : map) EXPECT_TRUE(all.insert(offset).second) << print(part) << " at " << offset;
    }
    EXPECT_EQ(static_cast<int64_t>(all.size()), elements);
    EXPECT_EQ(*all.rbegin(), elements - 1);
  });
}

TEST(Darray, NormalisesToAVectorWhereItIsOne) {
  const Blob blob =
      Blob::build(test::must_parse("darray(4, 2, [64, 64], [block, block], [default, default], [2, 2], C, double)"))
          .value();
  EXPECT_EQ(blob.root_kind(), SPL_LEAF_VECTOR);
  EXPECT_EQ(blob.depth(), 1);
}

// Rules: LAY-23, LAY-25, LAY-31, LAY-55.
TEST(Darray, RefusesWhatMpiRefuses) {
  for (const auto& [source, message] : std::vector<std::pair<const char*, const char*>>{
           {"darray(4, 0, [4], [block], [1], [3], C, int)", "a darray of 4 processes on a grid of 3"},
           {"darray(4, -1, [4], [block], [1], [4], C, int)", "rank -1"},
           {"darray(2, 0, [9], [block], [4], [2], C, int)", "need at least 5"},
           {"darray(2, 0, [9], [none], [default], [2], C, int)", "it must have 1"},
           {"darray(2, 0, [0], [block], [default], [2], C, int)", "both must be at least 1"},
           {"darray(2, 0, [9, 9], [block], [default], [2], C, int)", "as many of each"},
           {"darray(4294967296, 0, [9, 9, 9], [block, block, block], [default, default, default], "
            "[4294967296, 4294967296, 1], C, int)",
            "darray"}}) {
    const auto made = parse(source);
    ASSERT_FALSE(made) << source;
    EXPECT_NE(made.error().message.find(message), std::string::npos) << made.error().message;
  }
}

// Rules: LAY-15.
TEST(Dup, IsItsArgument) {
  const Type type = test::must_parse("resized(-4B, 20B, vector(2, 1, 2, int))");
  const Type copy = dup(type).value();
  EXPECT_FALSE(copy.same(type));
  EXPECT_EQ(copy.lb(), type.lb());
  EXPECT_EQ(copy.extent(), type.extent());
  EXPECT_EQ(test::byte_map(copy, 3), test::byte_map(type, 3));
  EXPECT_TRUE(std::ranges::equal(Blob::build(copy).value().bytes(), Blob::build(type).value().bytes()));
}

}  // namespace
}  // namespace spinloom::layout
