// Cursor, walker and copy path against the oracle.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "layout/copy.hpp"
#include "layout/cursor.hpp"
#include "layout/reciprocal.hpp"
#include "layout/test_support.hpp"

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
  if (blob.narrow()) {
    spl_walk_narrow(blob.data(), static_cast<uint32_t>(first), static_cast<uint32_t>(bytes), emit_narrow, &check);
  } else {
    spl_walk_wide(blob.data(), static_cast<uint64_t>(first), static_cast<uint64_t>(bytes), emit_wide, &check);
  }
}

// Any cut [first, last) of a message.
std::pair<int64_t, int64_t> random_cut(Random& random, int64_t total) {
  const int64_t a = random.between(0, total);
  const int64_t b = random.chance(1, 2) ? random.between(0, total) : std::min(total, a + random.between(0, 70));
  return {std::min(a, b), std::max(a, b)};
}

TEST(Walk, EveryCutOfRandomTypesIsWhatTheOracleSays) {
  int64_t nonempty = 0;
  test::for_seeds(4000, [&](Random& random) {
    const Type type = test::random_type(random, random.between(0, 5), 400);
    const int64_t count = random.between(1, 4);
    const auto map = test::byte_map(type, count);
    SCOPED_TRACE(text(count, " x ", print(type)));
    for (const Width width : {Width::narrow, Width::wide}) {
      const auto blob = Blob::build(type, {width, count});
      ASSERT_TRUE(blob) << blob.error().message;
      const auto total = static_cast<int64_t>(map.size());
      ASSERT_EQ(blob->size() * count, total);
      for (int cut = 0; cut < 12; ++cut) {
        const auto [first, last] = cut == 0 ? std::pair<int64_t, int64_t>{0, total} : random_cut(random, total);
        Check check{&map, first, blob->true_lb()};
        walk(*blob, first, last - first, check);
        ASSERT_EQ(check.packed, last - first) << first << " to " << last;
        ASSERT_EQ(check.wrong, 0) << first << " to " << last;
        nonempty += last > first ? 1 : 0;
      }
    }
  });
  EXPECT_GT(nonempty, 0);
}

TEST(Cursor, StepsAndSeeksLikeTheOracle) {
  test::for_seeds(1500, [](Random& random) {
    const Type type = test::random_type(random, random.between(0, 5), 300);
    const int64_t count = random.between(0, 4);
    const auto map = test::byte_map(type, count);
    SCOPED_TRACE(text(count, " x ", print(type)));
    const auto blob = Blob::build(type, {random.chance(1, 2) ? Width::narrow : Width::wide, count});
    ASSERT_TRUE(blob) << blob.error().message;
    auto cursor = Cursor::open(*blob, count);
    ASSERT_TRUE(cursor) << cursor.error().message;
    const auto total = static_cast<int64_t>(map.size());
    ASSERT_EQ(cursor->total(), total);
    for (int round = 0; round < 6; ++round) {
      const int64_t from = round == 0 ? 0 : random.between(0, total);
      ASSERT_TRUE(cursor->seek(from));
      int64_t position = from;
      for (;;) {
        const Piece piece = cursor->next(random.between(1, 40));
        if (piece.bytes == 0) break;
        for (int64_t i = 0; i < piece.bytes; ++i) {
          ASSERT_EQ(piece.offset + i, map[static_cast<size_t>(position + i)]) << position << " + " << i;
        }
        position += piece.bytes;
        ASSERT_EQ(cursor->position(), position);
      }
      ASSERT_EQ(position, total);
    }
    EXPECT_FALSE(cursor->seek(total + 1));
    EXPECT_FALSE(cursor->seek(-1));
  });
}

TEST(Copy, UnpackedCutsEqualTheOracleGapsAndGuardsIncluded) {
  test::for_seeds(1500, [](Random& random) {
    const Type type = test::random_type(random, random.between(0, 5), 300);
    const int64_t count = random.between(1, 4);
    SCOPED_TRACE(text(count, " x ", print(type)));
    const auto blob = Blob::build(type, {random.chance(1, 2) ? Width::narrow : Width::wide, count});
    ASSERT_TRUE(blob) << blob.error().message;
    const oracle::Reach reach = oracle::reach(type, count);
    constexpr int64_t guard = 64;
    const int64_t base = guard - reach.first;
    std::vector<std::byte> before(static_cast<size_t>(reach.last - reach.first + 2 * guard));
    for (std::byte& byte : before) byte = static_cast<std::byte>(random.below(256));
    std::vector<std::byte> packed(static_cast<size_t>(count * type.size()));
    for (std::byte& byte : packed) byte = static_cast<std::byte>(random.below(256));
    auto destination = before;
    const auto total = static_cast<int64_t>(packed.size());
    for (int64_t at = 0; at < total;) {  // packets of random length, in order: overlapping types are defined so
      const int64_t bytes = std::min(total - at, random.between(1, 100));
      const auto part = std::span<const std::byte>(packed).subspan(static_cast<size_t>(at), static_cast<size_t>(bytes));
      ASSERT_TRUE(unpack(*blob, count, destination.data() + base, at, at + bytes, part));
      at += bytes;
    }
    const auto same = oracle::compare(type, count, packed, destination, base, before);
    ASSERT_TRUE(same) << same.error().message;
    std::vector<std::byte> ours(packed.size());
    std::vector<std::byte> theirs(packed.size());
    ASSERT_TRUE(pack(*blob, count, destination.data() + base, 0, total, ours));
    ASSERT_TRUE(oracle::pack(type, count, destination.data() + base, theirs));
    ASSERT_EQ(ours, theirs);
    EXPECT_FALSE(pack(*blob, count, destination.data() + base, 0, total + 1, ours));
  });
}

TEST(Copy, NarrowBlobsReachBeyondTwoGigabytesOfMemory) {
  // One byte a megabyte, 4000 elements: 4 GB apart, which no narrow walk reaches in one go.
  const Type type = test::must_parse("resized(0B, 1048576B, byte)");
  const auto blob = Blob::build(type);
  ASSERT_TRUE(blob);
  ASSERT_TRUE(blob->narrow());
  ASSERT_FALSE(blob->narrow_reaches(4000));
  auto cursor = Cursor::open(*blob, 4000);
  ASSERT_TRUE(cursor);
  ASSERT_TRUE(cursor->seek(3999));
  EXPECT_EQ(cursor->next(1).offset, 3999 * int64_t{1048576});
  const auto wide = Blob::build(type, {Width::automatic, 4000});
  ASSERT_TRUE(wide);
  EXPECT_FALSE(wide->narrow());
  EXPECT_FALSE(Blob::build(type, {Width::narrow, 4000}));
}

TEST(Walk, AbsoluteAddressesStayNarrow) {
  // Displacements as MPI_BOTTOM gives them: far from 0, close to each other, in falling order.
  const Type type =
      test::must_parse("struct([(140737488359424B, 3, int), (140737488355328B, vector(4, 1, 2, double))])");
  const auto blob = Blob::build(type);
  ASSERT_TRUE(blob);
  EXPECT_TRUE(blob->narrow());
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
  constexpr uint64_t wide_most = 0x7fffffffffffffff;
  // Where a floor can go wrong: at multiples of the divisor and next to them, for small and large divisors.
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
    const uint64_t large = 1 + random.below(wide_most >> random.below(63));
    const uint64_t large_multiple = wide_most / large * large;
    for (const uint64_t n :
         {uint64_t{0}, large - 1, large, large_multiple, large_multiple - 1, wide_most, random.below(wide_most)}) {
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
