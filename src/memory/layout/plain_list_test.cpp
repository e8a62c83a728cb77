// Lists of small blocks of which many touch: which stay lists for a processor, and that all move the right bytes.
#include "memory/layout/plain_list.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "memory/layout/committed.hpp"
#include "memory/layout/kernel_test.hpp"
#include "memory/layout/testing/random_types.hpp"

namespace spinloom::layout {
namespace {

using Places = std::vector<int64_t>;

Type blocks_at(Places places, int64_t block) {
  return *indexed_block(1, std::move(places), *contiguous(block, *primitive("byte")));
}

// Places of `count` blocks, in units of a block: `touching` percent of them touch the one before.
Places random_places(Random& random, int64_t count, int64_t touching) {
  Places places = {random.between(-20, 20)};
  while (static_cast<int64_t>(places.size()) < count) {
    places.push_back(places.back() + 1 + (random.between(0, 99) < touching ? 0 : random.between(1, 3)));
  }
  return places;
}

// Runs of 1, 2, .. up to `most` blocks in turn.
Places stairs(int64_t count, int64_t most) {
  Places places;
  for (int64_t run = 1, at = 0; static_cast<int64_t>(places.size()) < count; run = run % most + 1, ++at) {
    for (int64_t i = 0; i < run; ++i) places.push_back(at++);
  }
  return places;
}

uint32_t kind_of(const Places& places, int64_t block) {
  return Committed::commit(blocks_at(places, block))->blob().root_kind();
}

TEST(PlainList, SmallBlocksStayAListWhereManyTouch) {
  for (const int64_t block : {4, 8, 12, 16}) {
    EXPECT_EQ(kind_of(stairs(300, 2), block), SPL_LEAF_LIST) << block;  // a third touch
    EXPECT_EQ(kind_of(stairs(300, 4), block), SPL_LEAF_LIST) << block;  // six of ten
    EXPECT_EQ(kind_of(stairs(300, 5), block), SPL_LEAF_RUNS) << block;  // two of three
  }
  for (const int64_t block : {2, 6, 20, 24, 32}) EXPECT_EQ(kind_of(stairs(300, 2), block), SPL_LEAF_RUNS) << block;
}

TEST(PlainList, BlocksMergeForANic) {
  const auto blob = Blob::build(blocks_at(stairs(300, 2), 8));
  ASSERT_TRUE(blob);
  EXPECT_EQ(blob->root_kind(), SPL_LEAF_RUNS);
}

TEST(PlainList, BlocksMergeWhereTheRunsAreAShorterListOrAVector) {
  const Places pairs = {0, 1, 10, 11, 30, 31, 35, 36, 40, 41};
  Places many;
  Places regular;
  for (int64_t i = 0; i < 20; ++i) {
    for (const int64_t place : pairs) many.push_back(100 * i + place);
    for (const int64_t place : {0, 1}) regular.push_back(5 * i + place);
  }
  const auto blob = Committed::commit(blocks_at(many, 8))->blob();
  EXPECT_EQ(blob.root_kind(), SPL_LEAF_LIST);
  EXPECT_EQ(blob.bytes().size(), Blob::build(blocks_at(many, 8))->bytes().size());  // an entry a pair
  EXPECT_EQ(kind_of(regular, 8), SPL_LEAF_VECTOR);
}

TEST(PlainList, FewRunsStayStructs) { EXPECT_EQ(kind_of(stairs(17, 4), 8), SPL_LEAF_RUNS); }

TEST(PlainList, EqualLengthsAreOneLength) {
  const Places places = stairs(300, 3);
  const std::vector<int64_t> ones(places.size(), 1);
  const Type item = *primitive("double");
  const auto listed = Committed::commit(*indexed_block(1, places, item));
  const auto lengths = Committed::commit(*indexed(places, ones, item));
  ASSERT_TRUE(listed && lengths);
  EXPECT_EQ(listed->blob().data(), lengths->blob().data());  // one blob of the pool
}

// One message between guards, moved in two parts with a kernel set, and compared with the type map.
void check(Random& random, const Type& type, Width width) {
  SCOPED_TRACE(print(type));
  const int64_t count = random.between(1, 2);
  const auto blob = Blob::build(type, {width, count, true});
  ASSERT_TRUE(blob) << blob.error().message;
  ASSERT_TRUE(Blob::validate(blob->bytes()));
  const std::vector<int64_t> map = test::byte_map(type, count);
  const oracle::Reach reach = oracle::reach(type, count);
  constexpr int64_t guard = 64;
  const std::vector<std::byte> before = noise(random, reach.last - reach.first + 2 * guard);
  const auto at = [&](int64_t offset) { return static_cast<size_t>(offset - reach.first + guard); };
  const auto total = static_cast<int64_t>(map.size());
  std::vector<std::byte> packed(map.size());
  const std::vector<std::byte> sent = noise(random, total);
  std::vector<std::byte> memory = before;
  const int64_t cut = random.chance(1, 3) ? 0 : random.between(0, total);
  for (const auto& [first, last] : {std::pair{int64_t{0}, cut}, {cut, total}}) {
    const auto bytes = static_cast<size_t>(last - first);
    ASSERT_TRUE(pack(*blob, count, before.data() + at(0), first, last, {packed.data() + first, bytes}));
    ASSERT_TRUE(unpack(*blob, count, memory.data() + at(0), first, last, {sent.data() + first, bytes}));
  }
  std::vector<std::byte> expected = before;
  for (size_t i = 0; i < map.size(); ++i) {
    ASSERT_EQ(packed[i], before[at(map[i])]) << i;
    expected[at(map[i])] = sent[i];
  }
  ASSERT_EQ(memory, expected);
}

TEST(PlainList, EveryKernelSetMovesTheBytesOfTheTypeMap) {
  for (const KernelSet* set : kernel_sets()) {
    ASSERT_TRUE(force_kernels(set->name));
    test::for_seeds(300, [](Random& random) {
      const Places places = random_places(random, random.between(2, 200), random.between(0, 100));
      const Type type = blocks_at(places, 4 * random.between(1, 5));
      for (const Width width : {Width::narrow, Width::wide}) check(random, type, width);
    });
  }
  const char* const asked = std::getenv("SPINLOOM_KERNEL");
  ASSERT_TRUE(force_kernels(asked == nullptr ? "" : asked));
}

TEST(PlainList, ListsOfOtherBlocksTakeTheBytesInPackedOrder) {
  test::for_seeds(300, [](Random& random) {
    constexpr int64_t unit = 48;  // bytes that every block divides
    const int64_t bytes = unit * random.between(20, 60);
    const auto side = [&] {
      const int64_t block = std::vector<int64_t>{4, 8, 12, 16, 24, 48}[static_cast<size_t>(random.below(6))];
      return blocks_at(random_places(random, bytes / block, random.between(0, 80)), block);
    };
    const Type from = side();
    const Type to = side();
    const std::vector<int64_t> from_map = test::byte_map(from, 1);
    const std::vector<int64_t> to_map = test::byte_map(to, 1);
    const std::vector<std::byte> source = noise(random, from.true_extent());
    std::vector<std::byte> target = noise(random, to.true_extent());
    std::vector<std::byte> expected = target;
    for (size_t i = 0; i < from_map.size(); ++i) {
      expected[static_cast<size_t>(to_map[i] - to.true_lb())] =
          source[static_cast<size_t>(from_map[i] - from.true_lb())];
    }
    const auto read = Committed::commit(from);
    const auto written = Committed::commit(to);
    ASSERT_TRUE(read && written);
    ASSERT_TRUE(copy({&*read, 1, source.data() - from.true_lb()}, {&*written, 1, target.data() - to.true_lb()}));
    ASSERT_EQ(target, expected) << print(from) << " to " << print(to);
  });
}

}  // namespace
}  // namespace spinloom::layout
