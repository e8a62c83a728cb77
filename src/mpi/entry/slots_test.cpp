// Slots of requests: the lowest free ones are taken, and a handle may have several.
#include "mpi/entry/slots.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <set>

#include "base/random.hpp"
#include "base/result.hpp"

namespace spinloom::mpi {
namespace {

TEST(Slots, ALoopTakesTheSameSlotsEachTime) {
  Slots slots;
  EXPECT_EQ(slots.add(70, false, false), 0U);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(slots.add(10, false, false), 1U);
    EXPECT_EQ(slots.add(11, false, true), 2U);
    EXPECT_TRUE(slots.any_wants_status());
    slots.remove(10);
    slots.remove(11);
    EXPECT_FALSE(slots.any_wants_status());
  }
  EXPECT_EQ(slots.find(70), 0U);
  EXPECT_EQ(slots.find(10), Slots::none);
}

TEST(Slots, OneThatMayBeCancelledAsksForAStatus) {
  Slots slots;
  const uint32_t slot = slots.add(10, true, false);
  slots.set_cancelling(slot, true);
  slots.set_cancelling(slot, true);
  EXPECT_TRUE(slots.any_wants_status());
  slots.set_cancelling(slot, false);
  EXPECT_FALSE(slots.any_wants_status());
  slots.set_cancelling(slot, true);
  slots.remove(10);
  EXPECT_FALSE(slots.any_wants_status());
  EXPECT_EQ(slots.add(11, false, false), slot);
  EXPECT_FALSE(slots.at(slot).is_cancelling);
}

TEST(Slots, OneHandleMayHaveSeveral) {
  Slots slots;
  EXPECT_EQ(slots.add(5, false, false), 0U);
  EXPECT_EQ(slots.add(5, false, true), 1U);
  EXPECT_EQ(slots.add(5, true, false), 2U);
  EXPECT_EQ(slots.find(5), 0U);
  slots.remove(5);
  EXPECT_EQ(slots.find(5), 1U);
  EXPECT_TRUE(slots.at(1).has_wildcard);
  slots.remove(5);
  EXPECT_EQ(slots.find(5), 2U);
  EXPECT_TRUE(slots.at(2).is_persistent);
  EXPECT_FALSE(slots.at(2).is_active);
  slots.remove(5);
  slots.remove(5);
  EXPECT_EQ(slots.find(5), Slots::none);
}

// Against sets: free slots, and for each handle a queue of slots.
TEST(Slots, AreTheLowestFreeOnes) {
  Random random(1);
  Slots slots;
  std::set<uint32_t> free;
  for (uint32_t i = 0; i < 1'000; ++i) free.insert(i);
  std::map<uint64_t, std::deque<uint32_t>> taken;
  for (int step = 0; step < 20'000; ++step) {
    const uint64_t handle = random.below(300);
    const bool grows = free.size() > 100 && random.chance(step / 1'000 % 2 == 0 ? 2 : 1, 3);
    if (grows) {
      const uint32_t made = slots.add(handle, false, false);
      ASSERT_EQ(made, *free.begin());
      free.erase(made);
      taken[handle].push_back(made);
    } else if (!taken[handle].empty()) {
      ASSERT_EQ(slots.find(handle), taken[handle].front());
      slots.remove(handle);
      free.insert(taken[handle].front());
      taken[handle].pop_front();
    }
  }
}

// A thread waits for a request of handle 7; the MPI ends it and gives 7 to another thread, which waits for that before
// the first thread's call is written down. Each finds its own.
TEST(Slots, AClaimedSlotIsNotFoundByOthers) {
  Slots slots;
  const uint32_t first = slots.add(7, false, true);
  EXPECT_EQ(slots.claim(7), first);
  EXPECT_EQ(slots.find(7), Slots::none);
  const uint32_t second = slots.add(7, false, false);
  EXPECT_EQ(slots.claim(7), second);
  slots.remove(7, second);
  EXPECT_EQ(slots.find(7), Slots::none);
  EXPECT_TRUE(slots.any_wants_status());
  slots.at(first).is_claimed = false;  // a test in vain
  EXPECT_EQ(slots.find(7), first);
  const uint32_t third = slots.add(7, false, false);
  EXPECT_EQ(third, second);  // the lowest free one
  slots.remove(7);
  EXPECT_FALSE(slots.any_wants_status());
  EXPECT_EQ(slots.find(7), third);
  slots.remove(7);
  EXPECT_EQ(slots.find(7), Slots::none);
}

}  // namespace
}  // namespace spinloom::mpi
