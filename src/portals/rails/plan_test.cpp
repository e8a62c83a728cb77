// Shares of a message over rails that are equal, unequal, busy or lost; and how fragments are chosen.
#include "portals/rails/plan.hpp"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

namespace spinloom::rails {
namespace {

std::vector<uint64_t> bytes_by_rail(const std::vector<Fragment>& fragments, size_t rails) {
  std::vector<uint64_t> bytes(rails);
  for (const Fragment& fragment : fragments) bytes[fragment.rail] += fragment.length;
  return bytes;
}

TEST(Plan, CoversTheMessageOnceInOrder) {
  const std::vector<RailLoad> rails(3);
  for (const uint64_t bytes : {1ULL, 4096ULL, 1000000ULL, (16ULL << 20) + 5}) {
    uint64_t at = 0;
    for (const Fragment& fragment : plan(bytes, 512 << 10, rails)) {
      EXPECT_EQ(fragment.offset, at);
      EXPECT_GT(fragment.length, 0u);
      at += fragment.length;
    }
    EXPECT_EQ(at, bytes);
  }
  EXPECT_TRUE(plan(0, 4096, rails).empty());
}

TEST(Plan, EqualRailsCarryEqualShares) {
  const std::vector<RailLoad> rails(4);
  EXPECT_EQ(bytes_by_rail(plan(16 << 20, 512 << 10, rails), 4), std::vector<uint64_t>(4, 4 << 20));
}

// T = f / B a rail: rails of 3 and 1 GB/s end together when they carry three quarters and a quarter.
TEST(Plan, UnequalRailsEndTogether) {
  const std::array<RailLoad, 2> rails{RailLoad{Rate::per_byte_of(3'000'000'000), {}, true},
                                      RailLoad{Rate::per_byte_of(1'000'000'000), {}, true}};
  EXPECT_EQ(bytes_by_rail(plan(8 << 20, 64 << 10, rails), 2), (std::vector<uint64_t>{6 << 20, 2 << 20}));
}

// A rail that is busy for as long as it would need for a quarter of the message gets that much less.
TEST(Plan, BusyRailsCarryLess) {
  const Rate gigabyte = Rate::per_byte_of(1'000'000'000);
  const std::array<RailLoad, 2> rails{RailLoad{gigabyte, gigabyte.time_of(Bytes{2 << 20}), true},
                                      RailLoad{gigabyte, {}, true}};
  EXPECT_EQ(bytes_by_rail(plan(8 << 20, 64 << 10, rails), 2), (std::vector<uint64_t>{3 << 20, 5 << 20}));
}

TEST(Plan, LostRailsCarryNothing) {
  std::vector<RailLoad> rails(3);
  rails[1].is_usable = false;
  EXPECT_EQ(bytes_by_rail(plan(4 << 20, 512 << 10, rails), 3), (std::vector<uint64_t>{2 << 20, 0, 2 << 20}));
  for (RailLoad& rail : rails) rail.is_usable = false;
  EXPECT_TRUE(plan(4 << 20, 512 << 10, rails).empty());
}

// 10 and 11 GB/s are one group, 5 GB/s is another.
TEST(Plan, RailsThatDifferLittleCountAsEqual) {
  std::vector<RailLoad> rails{RailLoad{Rate(100, 1), {}, true}, RailLoad{Rate(200, 1), {}, true},
                              RailLoad{Rate(110, 1), {}, true}};
  level_speeds(rails);
  const auto ps = [&](size_t rail) { return rails[rail].byte_time.time_of(Bytes{1000}).ps; };
  EXPECT_EQ(ps(0), 105'000);
  EXPECT_EQ(ps(1), 200'000);
  EXPECT_EQ(ps(2), 105'000);
  std::vector<RailLoad> instant{RailLoad{Rate(0, 1), {}, true}, RailLoad{Rate(1, 1), {}, true}};
  level_speeds(instant);
  EXPECT_EQ(instant[0].byte_time.time_of(Bytes{1000}).ps, 0);
  EXPECT_EQ(instant[1].byte_time.time_of(Bytes{1000}).ps, 1000);
}

TEST(Plan, FragmentsAreChosenByLength) {
  constexpr uint64_t usual = fragment_bytes_usual;
  EXPECT_EQ(fragment_bytes_for(16 << 20, 4, usual), usual);
  EXPECT_EQ(fragment_bytes_for(1 << 20, 4, usual), 128u << 10);  // two for each rail
  EXPECT_EQ(fragment_bytes_for(100 << 10, 4, usual), 64u << 10);
  EXPECT_EQ(fragment_bytes_for(1 << 20, 4, 4096), 4096u);  // the user's wish
  EXPECT_EQ(fragment_bytes_for(1 << 20, 0, usual), usual);
}

}  // namespace
}  // namespace spinloom::rails
