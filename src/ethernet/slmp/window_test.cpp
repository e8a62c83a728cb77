// The window of SLMP as it grows and shrinks, and round trips as they are measured.
#include "ethernet/slmp/window.hpp"

#include <gtest/gtest.h>

#include "ethernet/slmp/round_trip.hpp"

namespace spinloom::slmp {
namespace {

// 10 + one for each acknowledgement, up to 20; a loss: 10, then one for each 10, 11, ... acknowledgements.
// Rules: SLMP-41.
TEST(SlmpWindow, GrowsHalvesAndGrowsSlowly) {
  Window window(20, false);
  EXPECT_EQ(window.packets(), 10);
  for (int i = 0; i < 30; ++i) window.on_acknowledgement();
  EXPECT_EQ(window.packets(), 20);
  window.on_loss(5, 40);
  EXPECT_EQ(window.packets(), 10);
  window.on_loss(39, 41);
  EXPECT_EQ(window.packets(), 10) << "a packet of the window that was halved";
  for (int i = 0; i < 10; ++i) window.on_acknowledgement();
  EXPECT_EQ(window.packets(), 11);
  for (int i = 0; i < 10; ++i) window.on_acknowledgement();
  EXPECT_EQ(window.packets(), 11);
  window.on_acknowledgement();
  EXPECT_EQ(window.packets(), 12);
  for (uint64_t i = 0; i < 9; ++i) window.on_loss(100 + i, 101 + i);
  EXPECT_EQ(window.packets(), 1);
}

// Rules: SLMP-42.
TEST(SlmpWindow, AFixedOneStays) {
  Window window(64, true);
  window.on_loss(5, 40);
  EXPECT_EQ(window.packets(), 64);
}

// S_wnd = S_recv * v_send / (v_send - v_recv): 512 KiB * 10 / (10 - 6) = 1280 KiB.
// Rules: SLMP-29, SLMP-30.
TEST(SlmpWindow, OfAReceiversBuffer) {
  EXPECT_EQ(window_of(512 << 10, 10, 6), 1280 << 10);
  EXPECT_EQ(window_of(100, 3, 1), 150);
  EXPECT_EQ(window_of(100, 7, 3), 175);
  EXPECT_EQ(window_of(10, 4, 1), 13) << "rounded down: more would not fit";
  EXPECT_EQ(window_of(100, 5, 0), 100) << "nobody takes anything away";
  EXPECT_EQ(window_of(100, 5, 5), std::nullopt);
  EXPECT_EQ(window_of(100, 5, 6), std::nullopt);
  EXPECT_EQ(window_of(~uint64_t{0}, 1000, 999), ~uint64_t{0});
}

// First sample R: R + 4 * R/2 = 3 R. Then var += (|R - r| - var) / 4, R += (r - R) / 8.
// Rules: SLMP-36, SLMP-38.
TEST(SlmpRoundTrip, FollowsMeasuredOnes) {
  RoundTrip trip({1000}, {1}, {1'000'000});
  EXPECT_EQ(trip.timeout(1), Time{1000});
  EXPECT_EQ(trip.timeout(3), Time{4000});
  trip.sample({80});
  EXPECT_EQ(trip.timeout(1), Time{240});
  trip.sample({160});  // var = 40 + (80 - 40) / 4 = 50, R = 80 + 80 / 8 = 90
  EXPECT_EQ(trip.timeout(1), Time{90 + 4 * 50});
  EXPECT_EQ(trip.timeout(2), Time{2 * 290});
  EXPECT_EQ(trip.timeout(60), Time{1'000'000});
}

}  // namespace
}  // namespace spinloom::slmp
