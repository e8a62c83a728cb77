// WritesUnderWay against a count of intervals, instant by instant.
#include "simulated/node/writes_under_way.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.hpp"

namespace spinloom::simulated {
namespace {

TEST(WritesUnderWayTest, NothingIsInFlightAtFirst) {
  const WritesUnderWay writes;
  EXPECT_EQ(writes.peak(), 0u);
  EXPECT_EQ(writes.total(), Time{0});
}

TEST(WritesUnderWayTest, AWriteThatLandsMakesRoomForTheNext) {
  WritesUnderWay writes;
  writes.on_request(Time{10});
  writes.on_landing(Time{20}, Time{15});
  writes.on_request(Time{20});
  writes.on_landing(Time{30}, Time{25});
  EXPECT_EQ(writes.peak(), 1u);
  EXPECT_EQ(writes.total(), Time{20});
}

TEST(WritesUnderWayTest, ARestartKeepsWhatIsInFlight) {
  WritesUnderWay writes;
  writes.on_request(Time{0});
  writes.on_request(Time{0});
  writes.on_landing(Time{40}, Time{20});
  writes.on_landing(Time{50}, Time{30});
  writes.restart(Time{30});
  EXPECT_EQ(writes.peak(), 2u);
  EXPECT_EQ(writes.total(), Time{30});
}

// Writes are asked for in any order of time, up to 100 later than now; the NIC serves them one after the other.
TEST(WritesUnderWayTest, AgreesWithACountOfIntervals) {
  Random random(7, "sim.writes_under_way");
  struct Write {
    int64_t asked = 0;
    int64_t landed = 0;
  };
  std::vector<Write> all;
  std::vector<std::pair<int64_t, int64_t>> left;  // the time when a write leaves the NIC, and that when it lands
  WritesUnderWay writes;
  int64_t now = 0;
  int64_t free_at = 0;
  const auto leave_until = [&](int64_t until) {
    for (; !left.empty() && left.front().first <= until; left.erase(left.begin())) {
      writes.on_landing(Time{left.front().second}, Time{left.front().first});
    }
  };
  for (int number = 0; number < 500; ++number) {
    now += static_cast<int64_t>(random.below(30));
    leave_until(now);
    const int64_t here = random.below(4) == 0 ? now + static_cast<int64_t>(random.below(100)) : now;
    free_at = std::max(free_at, here) + 1 + static_cast<int64_t>(random.below(20));
    writes.on_request(Time{here});
    all.push_back({here, free_at + 250});
    left.emplace_back(free_at, free_at + 250);
  }
  leave_until(INT64_MAX);
  int64_t sum = 0;
  uint64_t peak = 0;
  for (const Write& one : all) {
    sum += one.landed - one.asked;
    const auto in_flight = std::count_if(all.begin(), all.end(), [&](const Write& other) {
      return other.asked <= one.asked && other.landed > one.asked;
    });
    peak = std::max(peak, static_cast<uint64_t>(in_flight));
  }
  EXPECT_EQ(writes.peak(), peak);
  EXPECT_EQ(writes.total(), Time{sum});
}

}  // namespace
}  // namespace spinloom::simulated
