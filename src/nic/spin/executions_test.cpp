// Slots of executions, the packet buffer and the outbound buffer.
#include "nic/spin/executions.hpp"

#include <gtest/gtest.h>

#include "nic/spin/outbound_buffer.hpp"

namespace spinloom::spin {
namespace {

constexpr ContextId context{0};

TEST(PacketBuffer, CountsWhatIsUsedAndThePeak) {
  PacketBuffer buffer(100);
  buffer.take(60);
  buffer.take(40);
  EXPECT_EQ(buffer.free(), 0u);
  buffer.release(70);
  buffer.take(10);
  EXPECT_EQ(buffer.used(), 40u);
  EXPECT_EQ(buffer.peak(), 100u);
  EXPECT_THROW(buffer.take(61), InternalError);
}

// Rules: FPS-83.
TEST(Executions, ASlotIsFreeWhenItsHandlerHasEndedAndItsDmasAreDone) {
  PacketBuffer buffer(100);
  Executions executions(buffer);
  buffer.take(30);
  Execution& one = executions.open({1, 7}, HandlerKind::payload, context, 30);
  EXPECT_EQ(one.owner.slot, 7u);
  EXPECT_EQ(executions.waiting(), 1u);
  executions.ready(one);
  executions.start(one, HpuId{3});
  EXPECT_EQ(executions.waiting(), 0u);
  Executions::dma_issued(one);
  EXPECT_FALSE(executions.free_if_done(one));
  executions.end(one);
  EXPECT_FALSE(executions.free_if_done(one));
  EXPECT_EQ(buffer.used(), 30u);
  Executions::dma_done(one);
  EXPECT_TRUE(executions.free_if_done(one));
  EXPECT_EQ(buffer.used(), 0u);
  EXPECT_EQ(executions.size(), 0u);
}

TEST(Executions, OneThatIsDroppedNeverRuns) {
  PacketBuffer buffer(100);
  Executions executions(buffer);
  Execution& one = executions.open({}, HandlerKind::payload, context);
  executions.ready(one);
  executions.drop(one);
  EXPECT_EQ(executions.waiting(), 0u);
  EXPECT_THROW(executions.start(one, HpuId{0}), InternalError);
}

TEST(Executions, BytesThatBecomeADmasAreNotReleasedTwice) {
  PacketBuffer buffer(100);
  Executions executions(buffer);
  buffer.take(30);
  Execution& one = executions.open({}, HandlerKind::payload, context, 30);
  EXPECT_EQ(Executions::take_bytes(one), 30u);
  executions.drop(one);
  EXPECT_TRUE(executions.free_if_done(one));
  EXPECT_EQ(buffer.used(), 30u);
}

TEST(OutboundBuffer, PacketsLeaveInTheOrderOfTheirMessage) {
  OutboundBuffer buffer(2, 8);
  OutboundQueue queue;
  const OutboundSlotId first = buffer.take(queue, 5, 0, 8);
  const OutboundSlotId second = buffer.take(queue, 5, 8, 4);
  EXPECT_FALSE(buffer.has_room());
  EXPECT_FALSE(buffer.fill(queue, second));
  EXPECT_FALSE(buffer.first_is_filled(queue));
  EXPECT_TRUE(buffer.fill(queue, first));
  EXPECT_EQ(buffer.pop(queue), first);
  EXPECT_EQ(buffer.pop(queue), second);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(buffer[second].offset, 8u);
  EXPECT_EQ(buffer.size(), 2u);  // both count until they have left
  buffer.give_back(first);
  EXPECT_TRUE(buffer.has_room());
  EXPECT_EQ(buffer.peak(), 2u);
}

TEST(OutboundBuffer, ASlotHasNothingOfTheMessageBefore) {
  OutboundBuffer buffer(1, 4);
  OutboundQueue queue;
  const OutboundSlotId first = buffer.take(queue, 0, 0, 4);
  std::fill_n(buffer.bytes(first), 4, uint8_t{9});
  buffer.fill(queue, first);
  buffer.give_back(buffer.pop(queue));
  const OutboundSlotId again = buffer.take(queue, 1, 0, 3);
  EXPECT_EQ(again, first);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(buffer.bytes(again)[i], 0) << i;
}

}  // namespace
}  // namespace spinloom::spin
