// Results, units, random numbers, the nearest name, the log, and large vectors.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/checked.hpp"
#include "base/large_vector.hpp"
#include "base/log.hpp"
#include "base/nearest.hpp"
#include "base/random.hpp"
#include "base/result.hpp"
#include "base/units.hpp"

namespace spinloom {
namespace {

Result<int64_t> twice(int64_t value) {
  SPL_ASSIGN(const int64_t doubled, checked::mul(value, 2));
  return doubled;
}

TEST(Result, CarriesValueOrError) {
  EXPECT_EQ(*twice(21), 42);
  const auto overflow = twice(INT64_MAX);
  ASSERT_FALSE(overflow);
  EXPECT_EQ(overflow.error().code, Code::overflow);
  EXPECT_NE(overflow.error().message.find("9223372036854775807 * 2"), std::string::npos);
  EXPECT_THROW((void)overflow.value(), InternalError);
}

TEST(Units, TimeOfBytesIsRoundedUpOnce) {
  // G = 37.25 ps/B as a rational: 149/4; 3 B = 111.75 ps, rounded up to 112.
  const Rate line(149, 4);
  EXPECT_EQ(line.time_of(Bytes{3}).ps, 112);
  EXPECT_EQ(line.time_of(Bytes{2048}).ps, 76288);
  EXPECT_EQ(Rate::cycle_of(800'000'000).time_of_cycles(1).ps, 1250);
}

TEST(Random, SequenceIsAFunctionOfSeedAndStream) {
  Random a(1, "network");
  Random b(1, "network");
  Random other(1, "layout");
  EXPECT_EQ(a.next(), b.next());
  EXPECT_NE(Random(1, "network").next(), other.next());
  EXPECT_NE(Random(1, "network").next(), Random(2, "network").next());
}

TEST(Random, FirstNumbersAreFixedForEver) {
  Random random(1);
  EXPECT_EQ(random.next(), 0xb3f2af6d0fc710c5ULL);
  EXPECT_EQ(random.next(), 0x853b559647364ceaULL);
}

TEST(Random, ShuffleIsAPermutation) {
  std::vector<int> values(100);
  std::iota(values.begin(), values.end(), 0);
  Random(7, "shuffle").shuffle(values);
  EXPECT_FALSE(std::is_sorted(values.begin(), values.end()));
  std::sort(values.begin(), values.end());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(values[static_cast<size_t>(i)], i);
}

TEST(Nearest, CountsLetters) {
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("vector", "vector"), 0u);
}

TEST(Nearest, NamesTheClosestOrNothing) {
  const std::vector<std::string_view> known{"vector", "hvector", "struct"};
  EXPECT_EQ(nearest("vectr", known), "vector");
  EXPECT_EQ(nearest("hvectro", known), "hvector");
  EXPECT_EQ(nearest("xyz", known), std::nullopt);
  EXPECT_EQ(nearest("vector", {}), std::nullopt);
}

TEST(Log, IsSilentUntilASinkIsInstalled) {
  EXPECT_FALSE(log::enabled(log::Level::error));
  std::string seen;
  log::install([&](log::Level, std::string_view area, std::string_view message) { seen = text(area, ": ", message); },
               log::Level::warning);
  log::emit(log::Level::info, "nic", "too quiet to hear");
  EXPECT_EQ(seen, "");
  log::emit(log::Level::warning, "nic", "queue is full");
  EXPECT_EQ(seen, "nic: queue is full");
  log::install(nullptr, log::Level::error);
}

// Small, as large as a huge page and a little more, and grown from one to the other.
TEST(LargeVector, IsAVectorWhateverItsSize) {
  struct alignas(64) Line {
    uint64_t number = 7;
  };
  LargeVector<Line> grown;
  for (uint64_t count : {1U, 1000U, (2U << 20) / 64, 100'000U}) {
    grown.resize(count);
    grown.back().number = count;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(grown.data()) % 64, 0);
    const LargeVector<Line> made(count);
    EXPECT_TRUE(std::ranges::all_of(made, [](const Line& line) { return line.number == 7; }));
  }
  EXPECT_EQ(grown[0].number, 1);
  EXPECT_EQ(grown[999].number, 1000);
  EXPECT_EQ(grown[1000].number, 7);
  EXPECT_THROW((void)LargeAllocator<Line>().allocate(SIZE_MAX / 64), std::bad_alloc);
}

}  // namespace
}  // namespace spinloom
