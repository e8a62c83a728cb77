// Ranges against a plain row of flags.
#include "base/range_table.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

#include "base/random.hpp"

namespace spinloom {
namespace {

struct Rig {
  explicit Rig(uint32_t granules)
      : memory(RangeTable::bytes_for(granules)), owner(granules), table(memory.data(), granules) {}

  std::vector<uint8_t> memory;
  std::vector<uint32_t> owner;  // 0: nobody; else the number of who has it
  RangeTable table;
};

TEST(RangeTable, GivesEverythingOnceAndTakesItBack) {
  Rig rig(1000);
  for (uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(rig.table.allocate(1).first, i);
  EXPECT_EQ(rig.table.allocate(1).first, RangeTable::none);
  for (uint32_t i = 0; i < 1000; i += 2) rig.table.release(i);
  EXPECT_EQ(rig.table.allocate(2).first, RangeTable::none) << "500 are free, but no two beside each other";
  EXPECT_EQ(rig.table.used_granules(), 500u);
  for (uint32_t i = 1; i < 1000; i += 2) rig.table.release(i);
  EXPECT_EQ(rig.table.used_granules(), 0u);
  EXPECT_EQ(rig.table.allocate(1000).first, 0u) << "all of them are one range again";
}

TEST(RangeTable, RangesThatNobodyEverHadAreClean) {
  Rig rig(100);
  EXPECT_FALSE(rig.table.allocate(10).dirty);
  EXPECT_FALSE(rig.table.allocate(10).dirty);
  rig.table.release(0);
  EXPECT_EQ(rig.table.dirty_granules(), 10u);
  const auto again = rig.table.allocate(10);
  EXPECT_EQ(again.first, 0u) << "what has been used comes before what has not";
  EXPECT_TRUE(again.dirty);
  EXPECT_EQ(rig.table.dirty_granules(), 0u);
  rig.table.release(0);
  std::map<uint32_t, uint32_t> cleaned;
  rig.table.clean([&](uint32_t first, uint32_t count) { return cleaned.emplace(first, count).second; });
  EXPECT_EQ(cleaned, (std::map<uint32_t, uint32_t>{{0, 10}}));
  EXPECT_FALSE(rig.table.allocate(10).dirty);
}

TEST(RangeTable, WhatIsNoRangeHasNoCount) {
  Rig rig(100);
  ASSERT_EQ(rig.table.allocate(10).first, 0u);
  ASSERT_EQ(rig.table.allocate(5).first, 10u);
  EXPECT_EQ(rig.table.count_of(10), 5u);
  for (const uint32_t other : {1u, 9u, 11u, 15u, 99u, 100u, RangeTable::none}) EXPECT_EQ(rig.table.count_of(other), 0u);
  rig.table.release(10);
  EXPECT_EQ(rig.table.count_of(10), 0u);
  EXPECT_FALSE(rig.table.resize(10, 3));
}

TEST(RangeTable, TheLongestTableIsOneRange) {
  constexpr uint32_t all = RangeTable::granules_max;
  // calloc() gives pages that are there only once they are touched.
  const std::unique_ptr<void, void (*)(void*)> memory(std::calloc(1, RangeTable::bytes_for(all)), &std::free);
  ASSERT_NE(memory.get(), nullptr);
  RangeTable table(memory.get(), all);
  ASSERT_EQ(table.allocate(1).first, 0u);
  EXPECT_EQ(table.allocate(all).first, RangeTable::none);
  EXPECT_EQ(table.allocate(all, all).first, RangeTable::none);
  table.release(0);
  EXPECT_EQ(table.allocate(all).first, 0u);
  EXPECT_EQ(table.used_granules(), all);
}

TEST(RangeTable, RandomWorkKeepsToItself) {
  Random random(1, "ranges");
  for (const uint32_t granules : {1u, 7u, 64u, 5000u}) {
    Rig rig(granules);
    std::map<uint32_t, uint32_t> mine;  // first, count
    uint64_t used = 0, refused = 0;
    for (int step = 0; step < 20'000; ++step) {
      const uint64_t what = random.below(10);
      if (what < 5 || mine.empty()) {
        const auto count = static_cast<uint32_t>(1 + random.below(random.chance(1, 10) ? granules : 20));
        const uint32_t alignment = 1u << random.below(6);
        const auto taken = rig.table.allocate(count, alignment);
        if (taken.first == RangeTable::none) {
          ++refused;
          continue;
        }
        ASSERT_EQ(taken.first % alignment, 0u);
        ASSERT_LE(taken.first + count, granules);
        for (uint32_t i = taken.first; i < taken.first + count; ++i) {
          ASSERT_EQ(rig.owner[i], 0u) << "given twice";
          rig.owner[i] = taken.first + 1;
        }
        mine[taken.first] = count;
        used += count;
        continue;
      }
      auto one = std::next(mine.begin(), static_cast<long>(random.below(mine.size())));
      const auto [first, count] = *one;
      ASSERT_EQ(rig.table.count_of(first), count);
      if (what < 7) {
        const auto now = static_cast<uint32_t>(1 + random.below(2 * count + 2));
        bool room = first + now <= granules;
        for (uint32_t i = first + count; room && i < first + now; ++i) room = rig.owner[i] == 0;
        ASSERT_EQ(rig.table.resize(first, now), room);
        if (!room) continue;
        for (uint32_t i = first; i < first + std::max(now, count); ++i) rig.owner[i] = i < first + now ? first + 1 : 0;
        used += now;
        one->second = now;
      } else {
        rig.table.release(first);
        for (uint32_t i = first; i < first + count; ++i) rig.owner[i] = 0;
        mine.erase(one);
      }
      used -= count;
      ASSERT_EQ(rig.table.used_granules(), used);
      std::map<uint32_t, uint32_t> seen;
      rig.table.for_each_used([&](uint32_t at, uint32_t length) { seen[at] = length; });
      ASSERT_EQ(seen, mine);
    }
    EXPECT_GT(refused, 0u);
    for (const auto& [first, count] : mine) rig.table.release(first);
    EXPECT_EQ(rig.table.allocate(granules).first, 0u);
  }
}

}  // namespace
}  // namespace spinloom
