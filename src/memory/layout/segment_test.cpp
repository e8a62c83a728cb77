// The segment against the oracle: in order, resumed, caught up, reset, from checkpoints.
#include "memory/layout/segment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "memory/layout/testing/random_types.hpp"

namespace spinloom::layout {
namespace {

struct Check {
  const std::vector<int64_t>* map;
  int64_t first;
  int64_t true_lb;
  int64_t packed = 0;
  int64_t wrong = 0;

  void piece(int64_t offset, int64_t at, int64_t bytes) {
    wrong += at != packed || bytes <= 0 ? 1 : 0;
    for (int64_t i = 0; i < bytes; ++i) {
      const auto index = static_cast<size_t>(first + at + i);
      wrong += index >= map->size() || (*map)[index] != true_lb + offset + i ? 1 : 0;
    }
    packed += bytes;
  }
};

void emit_narrow(void* context, int32_t offset, uint32_t packed, uint32_t bytes) {
  static_cast<Check*>(context)->piece(offset, packed, bytes);
}
void emit_wide(void* context, int64_t offset, uint64_t packed, uint64_t bytes) {
  static_cast<Check*>(context)->piece(offset, static_cast<int64_t>(packed), static_cast<int64_t>(bytes));
}

struct NarrowOps {
  using State = spl_segment_narrow;
  static void init(State& state, const Blob& blob) { spl_segment_init_narrow(&state, blob.data()); }
  static int64_t manipulate(State& state, const Blob& blob, int64_t first, int64_t last, Check& check) {
    return spl_segment_manipulate_narrow(&state, blob.data(), static_cast<uint32_t>(first), static_cast<uint32_t>(last),
                                         emit_narrow, &check);
  }
};

struct WideOps {
  using State = spl_segment_wide;
  static void init(State& state, const Blob& blob) { spl_segment_init_wide(&state, blob.data()); }
  static int64_t manipulate(State& state, const Blob& blob, int64_t first, int64_t last, Check& check) {
    return static_cast<int64_t>(spl_segment_manipulate_wide(&state, blob.data(), static_cast<uint64_t>(first),
                                                            static_cast<uint64_t>(last), emit_wide, &check));
  }
};

// Counts the whole blocks of the nest between two packed positions, as a catch-up does.
int64_t blocks_between(const Blob& blob, int64_t count, int64_t first, int64_t last) {
  auto segment = Segment::open(blob, count);
  EXPECT_TRUE(segment);
  EXPECT_TRUE(segment->advance(first));
  const auto blocks = segment->advance(last);
  EXPECT_TRUE(blocks);
  return *blocks;
}

template <class Ops>
void run_random(Random& random, Width width) {
  const Type type = test::random_type(random, random.between(0, 5), 400);
  const int64_t count = random.between(1, 4);
  SCOPED_TRACE(text(count, " x ", print(type)));
  const auto map = test::byte_map(type, count);
  const auto total = static_cast<int64_t>(map.size());
  const auto blob = Blob::build(type, {width, count});
  ASSERT_TRUE(blob) << blob.error().message;
  typename Ops::State state{};
  Ops::init(state, *blob);
  // In order, in packets of random length.
  for (int64_t at = 0; at < total;) {
    const int64_t bytes = std::min(total - at, random.between(1, 60));
    Check check{&map, at, blob->true_lb()};
    ASSERT_EQ(Ops::manipulate(state, *blob, at, at + bytes, check), 0);
    ASSERT_EQ(check.packed, bytes) << at;
    ASSERT_EQ(check.wrong, 0) << at << " + " << bytes;
    at += bytes;
    ASSERT_EQ(static_cast<int64_t>(state.position), at);
  }
  // In any order: ahead catches up, behind starts again.
  for (int round = 0; round < 10; ++round) {
    const int64_t a = random.between(0, total);
    const int64_t b = random.between(0, total);
    const int64_t first = std::min(a, b);
    const int64_t last = std::max(a, b);
    if (first == last) continue;
    const auto from = static_cast<int64_t>(state.position);
    Check check{&map, first, blob->true_lb()};
    const int64_t blocks = Ops::manipulate(state, *blob, first, last, check);
    ASSERT_EQ(check.packed, last - first) << first << " to " << last;
    ASSERT_EQ(check.wrong, 0) << first << " to " << last << " from " << from;
    ASSERT_EQ(blocks, blocks_between(*blob, count, from > first ? 0 : from, first));
  }
}

TEST(Segment, NarrowProcessesEveryByteOnce) {
  test::for_seeds(2500, [](Random& random) { run_random<NarrowOps>(random, Width::narrow); });
}

TEST(Segment, WideProcessesEveryByteOnce) {
  test::for_seeds(2500, [](Random& random) { run_random<WideOps>(random, Width::wide); });
}

TEST(Segment, CheckpointsResumeAnywhere) {
  test::for_seeds(1500, [](Random& random) {
    const Type type = test::random_type(random, random.between(0, 5), 400);
    if (type.size() == 0) return;
    const int64_t count = random.between(1, 3);
    SCOPED_TRACE(text(count, " x ", print(type)));
    const auto map = test::byte_map(type, count);
    const auto total = static_cast<int64_t>(map.size());
    const auto blob = Blob::build(type, {Width::narrow, count});
    ASSERT_TRUE(blob) << blob.error().message;
    auto host = Segment::open(*blob, count);
    ASSERT_TRUE(host);
    EXPECT_EQ(host->state().size(), static_cast<size_t>(Segment::state_bytes(*blob)));
    for (int round = 0; round < 5; ++round) {
      const int64_t checkpoint = random.between(0, total - 1);
      ASSERT_TRUE(host->advance(checkpoint));
      ASSERT_EQ(host->position(), checkpoint);
      // Only the checkpoint's bytes travel; what lies behind them in a fresh segment is garbage.
      spl_segment_narrow resumed;
      std::memset(&resumed, 0x5a, sizeof(resumed));
      std::memcpy(&resumed, host->state().data(), host->state().size());
      const int64_t first = random.between(checkpoint, total - 1);
      const int64_t last = random.between(first + 1, total);
      Check check{&map, first, blob->true_lb()};
      spl_segment_manipulate_narrow(&resumed, blob->data(), static_cast<uint32_t>(first), static_cast<uint32_t>(last),
                                    emit_narrow, &check);
      ASSERT_EQ(check.packed, last - first);
      ASSERT_EQ(check.wrong, 0) << checkpoint << ": " << first << " to " << last;
    }
  });
}

TEST(Segment, CatchUpCountsTheBlocksOfAVector) {
  // 100 blocks of 48 B: from byte 0 to byte 1000, 20 whole blocks are left behind and 40 B of the next one.
  const auto blob = Blob::build(test::must_parse("vector(100, 6, 12, double)"));
  ASSERT_TRUE(blob);
  auto segment = Segment::open(*blob, 1);
  ASSERT_TRUE(segment);
  EXPECT_EQ(*segment->advance(1000), 20);
  EXPECT_EQ(*segment->advance(4800), 80);
  EXPECT_EQ(*segment->advance(96), 2);  // this place is behind, so it begins from the start again
  EXPECT_FALSE(segment->advance(4801));
  EXPECT_FALSE(segment->advance(-1));
}

TEST(Segment, StateIsAsSmallAsTheDepthNeeds) {
  const auto flat = Blob::build(test::must_parse("vector(100, 6, 12, double)"));
  const auto nested = Blob::build(test::must_parse("hvector(9, 1, 8192B, vector(10, 1, 12, double))"));
  ASSERT_TRUE(flat && nested);
  EXPECT_EQ(Segment::state_bytes(*flat), 28);
  EXPECT_EQ(Segment::state_bytes(*nested), 40);
  const auto wide = Blob::build(test::must_parse("vector(100, 6, 12, double)"), {Width::wide, 1});
  ASSERT_TRUE(wide);
  EXPECT_EQ(Segment::state_bytes(*wide), 56);
}

TEST(Segment, TellsWhenItWouldReset) {
  const auto blob = Blob::build(test::must_parse("vector(100, 6, 12, double)"));
  ASSERT_TRUE(blob);
  spl_segment_narrow segment;
  spl_segment_init_narrow(&segment, blob->data());
  spl_segment_catch_up_narrow(&segment, blob->data(), 500);
  EXPECT_TRUE(spl_segment_beyond_narrow(&segment, 499));
  EXPECT_FALSE(spl_segment_beyond_narrow(&segment, 500));
}

}  // namespace
}  // namespace spinloom::layout
