// The level that each line of a walk comes from, for caches of known sizes; and a copy probe that times every movement.
#include "app/measure/line_walk.hpp"

#include <gtest/gtest.h>

#include "app/measure/copy_probe.hpp"
#include "memory/layout/text.hpp"

namespace spinloom::app {
namespace {

const std::vector<CacheLevel> caches = {{32 << 10, 8}, {1 << 20, 8}, {32 << 20, 16}};
const std::vector<CacheLevel> pages = {{64 * 4096, 64}, {2048 * 4096, 8}};

LineWalk walk(const char* text, Movement movement) {
  const auto type = layout::parse(text);
  EXPECT_TRUE(type.ok());
  const auto blob = layout::Blob::build(*type);
  const auto found = walk_lines(*blob, 1, movement, caches, pages);
  EXPECT_TRUE(found.ok()) << found.error().message;
  return *found;
}

uint64_t all(const LineWalk::LineCounts& source) { return source.next + source.strided + source.scattered; }

TEST(LineWalk, WhatFitsComesFromTheFirstCache) {
  const LineWalk found = walk("hvector(16, 64, 128B, byte)", Movement::pack);
  EXPECT_EQ(found.accesses, 32U);  // 16 lines of the array, 16 packed
  for (const LineWalk::LineCounts& level : found.levels) EXPECT_EQ(all(level), 0U);
  EXPECT_EQ(found.pages[0], 0U);
}

TEST(LineWalk, WhatDoesNotFitComesFromTheNextOne) {
  // 128 KiB of lines and as many packed: each is fetched from the second cache, in order.
  const LineWalk found = walk("contig(131072, byte)", Movement::pack);
  EXPECT_EQ(found.accesses, 4096U);
  EXPECT_EQ(all(found.levels[0]), 4096U);
  EXPECT_GE(found.levels[0].next, 4094U);
  EXPECT_EQ(all(found.levels[1]) + all(found.levels[2]), 0U);
}

TEST(LineWalk, MemoryIsBehindTheLastCache) {
  const LineWalk found = walk("hvector(1048576, 64, 128B, byte)", Movement::unpack);
  constexpr uint64_t left = 2048;  // pages lie anywhere: a set that few of them share keeps some lines
  EXPECT_LE(all(found.levels[0]) + all(found.levels[1]), left);
  EXPECT_GE(all(found.levels[2]), (2U << 20) - left);
  EXPECT_GE(found.levels[2].strided, (1U << 20) - left);
  EXPECT_GE(found.levels[2].next, (1U << 20) - left);
}

TEST(LineWalk, ListedPlacesAreScattered) {
  const LineWalk found = walk("idxblock(1, rand(1, 100000, 8000), contig(64, byte))", Movement::copy);
  EXPECT_EQ(found.accesses, 16000U);
  EXPECT_GT(found.levels[0].scattered + found.levels[1].scattered, 15000U);
  EXPECT_GT(found.pages[0], 10000U);
}

TEST(LineWalk, ATransposeByTilesMeetsEveryLineOnce) {
  const auto type = layout::parse("hvector(512, 1, 8B, hvector(512, 8, 4096B, byte))");
  const auto blob = layout::Blob::build(*type);
  const auto by_tiles = walk_lines(*blob, 1, Movement::pack, caches, pages, WalkOrder::memory);
  const auto as_packed = walk_lines(*blob, 1, Movement::pack, caches, pages);
  EXPECT_EQ(by_tiles->accesses, 2U * 512 * 512 * 8 / 64);
  EXPECT_GT(as_packed->accesses, 512U * 512);
}

TEST(LineWalk, ACacheWithoutLinesIsAnError) {
  const auto blob = layout::Blob::build(*layout::parse("int"));
  EXPECT_FALSE(walk_lines(*blob, 1, Movement::pack, {{64, 8}}, pages).ok());
  EXPECT_FALSE(movement_named("move").ok());
}

TEST(CopyProbe, TimesEveryMovement) {
  for (const Movement movement : {Movement::pack, Movement::unpack, Movement::copy}) {
    const auto times = probe_copy("resized(-8B, 64B, hvector(3, 5, -16B, byte))", 7, movement, 3);
    ASSERT_TRUE(times.ok()) << times.error().message;
    ASSERT_EQ(times->size(), 3U);
    for (const double time : *times) EXPECT_GT(time, 0);
  }
  EXPECT_FALSE(probe_copy("contig(0, int)", 1, Movement::pack, 3).ok());
  EXPECT_FALSE(probe_copy("int", 1, Movement::pack, 0).ok());
  EXPECT_FALSE(probe_copy("hvector(2, 4, 1B, byte)", 1, Movement::unpack, 1).ok());
}

}  // namespace
}  // namespace spinloom::app
