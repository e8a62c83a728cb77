// The room that a receiver has reported: which packets may still leave.
#include "ethernet/slmp/room.hpp"

#include <gtest/gtest.h>

namespace spinloom::slmp {
namespace {

// Sends packets as long as there is room; returns how many left.
uint64_t depart(Room& room, uint64_t& next) {
  const uint64_t before = next;
  while (room.allows(next)) room.on_departure(next++);
  return next - before;
}

void answer(Room& room, uint64_t transmission, uint32_t packets) {
  room.on_settled(transmission);
  room.on_report(transmission, packets);
}

// Rules: SLMP-54.
TEST(SlmpRoom, AReportCountsFromThePacketThatItAnswers) {
  Room room(1);
  uint64_t next = 0;
  EXPECT_EQ(depart(room, next), 1) << "nothing has been reported";
  answer(room, 0, 4);
  EXPECT_EQ(depart(room, next), 4);
  answer(room, 1, 3);  // 2 to 4 may have come later
  EXPECT_EQ(depart(room, next), 0);
  answer(room, 2, 3);
  EXPECT_EQ(depart(room, next), 1);
  room.on_settled(3);
  answer(room, 4, 3);  // only 5 may have come later
  EXPECT_EQ(depart(room, next), 2);
}

// 1 may come after 2 was answered, so it needs one of the reported places.
// Rules: SLMP-54.
TEST(SlmpRoom, WhatLeftBeforeAndIsUnderWayMayComeLater) {
  Room room(1);
  uint64_t next = 0;
  depart(room, next);
  answer(room, 0, 2);
  EXPECT_EQ(depart(room, next), 2);
  answer(room, 2, 3);
  EXPECT_EQ(depart(room, next), 2);
}

TEST(SlmpRoom, AnOldReportTakesNothingAway) {
  Room room(1);
  uint64_t next = 0;
  depart(room, next);
  answer(room, 0, 3);
  EXPECT_EQ(depart(room, next), 3);
  answer(room, 3, 5);
  answer(room, 1, 0);
  EXPECT_EQ(depart(room, next), 3) << "with 1 and 2, five after 3";
}

// Rules: SLMP-55.
TEST(SlmpRoom, OneLeavesWhereNothingIsUnderWay) {
  Room room(3);
  uint64_t next = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(depart(room, next), 1);
    answer(room, next - 1, 0);
  }
  EXPECT_EQ(depart(room, next), 1);
  answer(room, next - 1, 10);
  EXPECT_EQ(depart(room, next), 3) << "a third of ten";
}

}  // namespace
}  // namespace spinloom::slmp
