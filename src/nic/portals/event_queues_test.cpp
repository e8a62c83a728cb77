// Event queues: room, full queues, and slots for what the host has asked for.
#include "nic/portals/event_queues.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace spinloom::nic {
namespace {

constexpr QueueId queue{0};

struct EventQueuesTest : testing::Test, EventQueues::Watcher {
  void queue_filled(QueueId id, Actions&) override { filled.push_back(id); }
  void alloc(uint32_t slots, uint32_t reserved) { ASSERT_TRUE(queues.alloc({queue, slots, reserved, index}).ok()); }
  void post() { queues.post(queue, Event{}, out); }
  std::vector<QueueId> filled;
  std::shared_ptr<QueueIndex> index = std::make_shared<QueueIndex>();
  EventQueues queues{*this};
  Actions out;
};

TEST_F(EventQueuesTest, WithoutSlotsThereIsNoQueue) {
  EXPECT_FALSE(queues.alloc({queue, 0}).ok());
  EXPECT_FALSE(queues.free(queue).ok());
  EXPECT_FALSE(queues.exists(queue));
}

TEST_F(EventQueuesTest, EventsForNoQueueAreDropped) {
  post();
  EXPECT_TRUE(out.list.empty());
  alloc(4, 0);
  post();
  EXPECT_EQ(out.list.size(), 1u);
  EXPECT_EQ(index->posted, 1u);
  ASSERT_TRUE(queues.free(queue).ok());
  post();
  EXPECT_EQ(out.list.size(), 1u);
}

TEST_F(EventQueuesTest, TheWatcherHearsOfAFullQueueThatIsHeld) {
  alloc(3, 1);
  post();
  post();
  EXPECT_TRUE(filled.empty());  // no portal table entry holds the queue: the oldest event is overwritten
  index->taken = 2;
  queues.hold(queue);
  post();
  EXPECT_TRUE(filled.empty());
  post();
  EXPECT_EQ(filled, std::vector<QueueId>{queue});
  queues.unhold(queue);
  EXPECT_FALSE(queues.is_held(queue));
}

TEST_F(EventQueuesTest, RoomIsWhatIsNeitherWaitingNorExpected) {
  alloc(4, 0);
  EXPECT_TRUE(queues.has_room(queue, 4));
  post();
  queues.reserve(queue);
  EXPECT_TRUE(queues.has_room(queue, 2));
  EXPECT_FALSE(queues.has_room(queue, 3));
  queues.unreserve(queue);
  EXPECT_TRUE(queues.has_room(queue, 3));
}

TEST_F(EventQueuesTest, WhatTheHostAskedForGetsSlotsOfItsOwnInAFullQueue) {
  alloc(1, 0);
  queues.hold(queue);
  post();
  EXPECT_EQ(index->added, 0u);
  {
    const EventQueues::HostRequestScope asked(queues);
    post();
  }
  EXPECT_EQ(index->added, 1u);
  post();
  EXPECT_EQ(index->added, 1u);
}

}  // namespace
}  // namespace spinloom::nic
