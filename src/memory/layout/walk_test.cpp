// Cursor, walker and copy path at their edges. Random types and cuts are in differential_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "memory/layout/copy.hpp"
#include "memory/layout/cursor.hpp"
#include "memory/layout/reciprocal.hpp"
#include "memory/layout/testing/random_types.hpp"

namespace spinloom::layout {
namespace {

struct Check {
  const std::vector<int64_t>* map;
  int64_t first;
  int64_t true_lb;
  int64_t packed = 0;  // bytes emitted so far
  int64_t wrong = 0;
  int64_t pieces = 0;

  void piece(int64_t offset, int64_t at, int64_t bytes) {
    wrong += at != packed || bytes <= 0 ? 1 : 0;
    for (int64_t i = 0; i < bytes; ++i) {
      const auto index = static_cast<size_t>(first + at + i);
      wrong += index >= map->size() || (*map)[index] != true_lb + offset + i ? 1 : 0;
    }
    packed += bytes;
    ++pieces;
  }
};

void emit_narrow(void* context, int32_t offset, uint32_t packed, uint32_t bytes) {
  static_cast<Check*>(context)->piece(offset, packed, bytes);
}
void emit_wide(void* context, int64_t offset, uint64_t packed, uint64_t bytes) {
  static_cast<Check*>(context)->piece(offset, static_cast<int64_t>(packed), static_cast<int64_t>(bytes));
}

void walk(const Blob& blob, int64_t first, int64_t bytes, Check& check) {
  if (blob.is_narrow()) {
    spl_walk_narrow(blob.data(), static_cast<uint32_t>(first), static_cast<uint32_t>(bytes), emit_narrow, &check);
  } else {
    spl_walk_wide(blob.data(), static_cast<uint64_t>(first), static_cast<uint64_t>(bytes), emit_wide, &check);
  }
}

TEST(Cursor, SeeksWithinTheMessageOnly) {
  const auto blob = Blob::build(test::must_parse("vector(3, 2, 5, int)"));
  ASSERT_TRUE(blob);
  auto cursor = Cursor::open(*blob, 2);
  ASSERT_TRUE(cursor);
  EXPECT_TRUE(cursor->seek(48));
  EXPECT_EQ(cursor->next(1).bytes, 0);
  EXPECT_FALSE(cursor->seek(49));
  EXPECT_FALSE(cursor->seek(-1));
}

TEST(Copy, RefusesARangeThatIsNotTheMessages) {
  const auto blob = Blob::build(test::must_parse("vector(3, 2, 5, int)"));
  ASSERT_TRUE(blob);
  std::vector<std::byte> memory(96);
  std::vector<std::byte> packed(49);
  EXPECT_FALSE(pack(*blob, 2, memory.data(), 0, 49, packed));
  EXPECT_FALSE(pack(*blob, 2, memory.data(), 0, 48, packed));
  EXPECT_FALSE(unpack(*blob, -1, memory.data(), 0, 0, {}));
  EXPECT_FALSE(unpack(*blob, 2, memory.data(), 9, 8, {}));
}

TEST(Copy, NarrowBlobsReachBeyondTwoGigabytesOfMemory) {
  // 4000 elements of one byte, 1 MiB apart: they span 4 GB, which no narrow walk reaches without moving its base.
  const Type type = test::must_parse("resized(0B, 1048576B, byte)");
  const auto blob = Blob::build(type);
  ASSERT_TRUE(blob);
  ASSERT_TRUE(blob->is_narrow());
  ASSERT_FALSE(blob->narrow_reaches(4000));
  auto cursor = Cursor::open(*blob, 4000);
  ASSERT_TRUE(cursor);
  ASSERT_TRUE(cursor->seek(3999));
  EXPECT_EQ(cursor->next(1).offset, 3999 * int64_t{1048576});
  const auto wide = Blob::build(type, {Width::automatic, 4000});
  ASSERT_TRUE(wide);
  EXPECT_FALSE(wide->is_narrow());
  EXPECT_FALSE(Blob::build(type, {Width::narrow, 4000}));
}

TEST(Walk, AbsoluteAddressesStayNarrow) {
  // Displacements as MPI_BOTTOM gives them: far from 0, close to each other, in falling order.
  const Type type =
      test::must_parse("struct([(140737488359424B, 3, int), (140737488355328B, vector(4, 1, 2, double))])");
  const auto blob = Blob::build(type);
  ASSERT_TRUE(blob);
  EXPECT_TRUE(blob->is_narrow());
  EXPECT_EQ(blob->true_lb(), 140737488355328);
  const auto map = test::byte_map(type, 1);
  Check check{&map, 0, blob->true_lb()};
  walk(*blob, 0, blob->size(), check);
  EXPECT_EQ(check.wrong, 0);
  EXPECT_EQ(check.packed, 44);
  EXPECT_EQ(check.pieces, 5);
}

TEST(Divide, ReciprocalsAreExactAtTheEdges) {
  Random random(1, "divide");
  const auto check_narrow = [](uint32_t n, uint32_t d) {
    const Reciprocal r = Reciprocal::of(d, 32);
    ASSERT_EQ(spl_divide_narrow(n, static_cast<uint32_t>(r.multiplier), r.shift), n / d) << n << " / " << d;
  };
  const auto check_wide = [](uint64_t n, uint64_t d) {
    const Reciprocal r = Reciprocal::of(d, 64);
    ASSERT_EQ(spl_divide_wide(n, r.multiplier, r.shift), n / d) << n << " / " << d;
  };
  constexpr uint32_t most = 0x7fffffff;
  constexpr uint64_t wide_max = 0x7fffffffffffffff;
  // Divides at multiples of the divisor and next to them, where a rounded reciprocal could be wrong.
  for (uint32_t round = 0; round < 200000; ++round) {
    const uint32_t d =
        round < 50000
            ? round + 1
            : std::max<uint32_t>(1, most >> random.below(31)) -
                  static_cast<uint32_t>(random.below(3) == 0 ? 0 : random.below(std::max<uint32_t>(1, most >> 30)));
    const uint32_t divisor = std::max<uint32_t>(1, d);
    const uint32_t multiple = most / divisor * divisor;
    for (const uint32_t n :
         {0u, 1u, divisor - 1, divisor, multiple, multiple - 1, most, static_cast<uint32_t>(random.below(most))}) {
      check_narrow(n, divisor);
    }
    const uint64_t large = 1 + random.below(wide_max >> random.below(63));
    const uint64_t large_multiple = wide_max / large * large;
    for (const uint64_t n :
         {uint64_t{0}, large - 1, large, large_multiple, large_multiple - 1, wide_max, random.below(wide_max)}) {
      check_wide(n, large);
    }
    if (::testing::Test::HasFailure()) return;
  }
  for (uint32_t shift = 0; shift < 31; ++shift) {  // powers of two and their neighbours
    for (uint32_t d : {(1u << shift), (1u << shift) + 1, (2u << shift) - 1}) {
      if (d <= most) check_narrow(most, d);
      if (d <= most) check_narrow(most / d * d - 1 + (most / d * d == 0 ? 1 : 0), d);
    }
  }
}

}  // namespace
}  // namespace spinloom::layout
