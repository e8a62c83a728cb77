// The initiator alone: puts, gets, replies, acknowledgements, streams, and a peer that is lost.
#include "nic/portals/initiator.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace spinloom::nic {
namespace {

constexpr QueueId told_queue{0};
constexpr CounterId counter{0};
constexpr Rank peer{2};

NicLimits limits_of_test() {
  NicLimits limits;
  limits.payload_bytes = 16;
  limits.transfer_bytes = 16;
  limits.outbound_packets = 2;
  return limits;
}

struct InitiatorTest : testing::Test {
  InitiatorTest() {
    EXPECT_TRUE(queues.alloc({told_queue, 64}).ok());
    EXPECT_TRUE(triggers.alloc({counter}).ok());
    ContextCreate context{ContextId{0}, {}};
    context.context.payload_entry = 0;
    EXPECT_TRUE(contexts.create(context, 1, 16).ok());
  }
  Put put(uint64_t length, AckRequest ack = AckRequest::none) {
    Put made;
    made.local = memory.data();
    made.length = length;
    made.target = peer;
    made.queue = told_queue;
    made.counter = counter;
    made.ack_request = ack;
    return made;
  }
  template <class T>
  std::vector<T> take() {
    std::vector<T> found;
    for (const Action& action : out.list) {
      if (const T* one = std::get_if<T>(&action)) found.push_back(*one);
    }
    return found;
  }
  std::vector<EventKind> events() {
    std::vector<EventKind> kinds;
    for (const PostEvent& post : take<PostEvent>()) kinds.push_back(post.event.kind);
    out.clear();
    return kinds;
  }
  using Kinds = std::vector<EventKind>;

  std::array<uint8_t, 64> memory{};
  NicLimits config = limits_of_test();
  EventQueues queues{portals};
  Triggers triggers{8};
  ContextTable contexts{1024};
  PortalTable portals{queues, triggers, contexts, 4};
  PacketBuffer buffer{1024};
  Executions executions{buffer};
  DmaTracker dmas;
  Initiator initiator{Rank{1}, config, {queues, triggers, portals, contexts, executions, dmas, nullptr}};
  Actions out;
};

TEST_F(InitiatorTest, APutLeavesInPacketsAndIsToldWhenItHasBeenRead) {
  initiator.put(put(40), out);
  const auto sends = take<Send>();
  ASSERT_EQ(sends.size(), 3u);
  EXPECT_EQ(sends[2].packet.offset, 32u);
  EXPECT_EQ(sends[2].packet.payload.length, 8u);
  EXPECT_TRUE(sends[2].last);
  EXPECT_TRUE(events().empty());
  EXPECT_FALSE(initiator.packet_sent(sends[0].packet.message, out).has_value());
  EXPECT_EQ(events(), Kinds{EventKind::send});
  EXPECT_EQ(initiator.size(), 0u);
}

TEST_F(InitiatorTest, AnAckAheadOfTheSendEventWaitsForIt) {
  initiator.put(put(8, AckRequest::ack), out);
  Packet ack;
  ack.operation = Operation::ack;
  ack.source = peer;
  ack.message = take<Send>()[0].packet.message;
  ack.fields.ack_request = AckRequest::ack;
  out.clear();
  EXPECT_TRUE(initiator.take_ack(ack, out));
  EXPECT_TRUE(events().empty());
  EXPECT_FALSE(initiator.take_ack(ack, out));  // an ack is taken once
  (void)initiator.packet_sent(ack.message, out);
  EXPECT_EQ(events(), (Kinds{EventKind::send, EventKind::ack}));
}

TEST_F(InitiatorTest, AnAckOfSomebodyElseIsRefused) {
  initiator.put(put(8, AckRequest::ack), out);
  Packet ack;
  ack.operation = Operation::ack;
  ack.source = Rank{7};
  ack.message = take<Send>()[0].packet.message;
  EXPECT_FALSE(initiator.take_ack(ack, out));
}

TEST_F(InitiatorTest, AReplyNamesItsRequestAndGivesItsNumberBack) {
  Reply reply;
  reply.target = peer;
  reply.answers = 77;
  reply.user_ptr = 33;
  initiator.reply(reply, out);
  const auto sends = take<Send>();
  ASSERT_EQ(sends.size(), 1u);
  EXPECT_EQ(sends[0].packet.answers, 77u);
  EXPECT_EQ(initiator.packet_sent(sends[0].packet.message, out), 33u);
}

TEST_F(InitiatorTest, AGetEndsWithAllBytesOfItsReplyInMemory) {
  Get get;
  get.length = 24;
  get.target = peer;
  get.reply.local = memory.data();
  get.reply.queue = told_queue;
  initiator.get(get, out);
  Packet reply;
  reply.operation = Operation::reply;
  reply.source = peer;
  reply.answers = take<Send>()[0].packet.fields.request.reply_to;
  reply.message_length = 24;
  reply.payload = {PayloadRef::Space::local, memory.data(), 16};
  out.clear();
  EXPECT_TRUE(initiator.take_reply(reply, out));
  reply.offset = 16;
  reply.payload.length = 8;
  EXPECT_TRUE(initiator.take_reply(reply, out));
  const auto writes = take<DmaWrite>();
  ASSERT_EQ(writes.size(), 2u);
  EXPECT_TRUE(events().empty());
  for (const DmaWrite& write : writes) {
    const auto ended = dmas.end(write.dma);
    ASSERT_TRUE(ended.has_value());
    EXPECT_EQ(ended->owner.kind, OwnerKind::reply);
    initiator.reply_landed(ended->owner.slot, out);
  }
  EXPECT_EQ(events(), Kinds{EventKind::reply});
}

// Rules: P4F-11.22.
TEST_F(InitiatorTest, ALostPeerEndsWhatWaitsForIt) {
  initiator.put(put(8, AckRequest::ack), out);
  (void)initiator.packet_sent(take<Send>()[0].packet.message, out);
  Get get;
  get.length = 8;
  get.target = peer;
  get.reply.local = memory.data();
  get.reply.queue = told_queue;
  initiator.get(get, out);
  out.clear();
  initiator.lose_peer(peer, out);
  const auto posts = take<PostEvent>();
  ASSERT_EQ(posts.size(), 2u);
  EXPECT_EQ(posts[0].event.kind, EventKind::ack);
  EXPECT_EQ(posts[0].event.fail, Fail::undeliverable);
  EXPECT_EQ(posts[1].event.kind, EventKind::reply);
  EXPECT_EQ(posts[1].event.fail, Fail::undeliverable);
  EXPECT_FALSE(initiator.may_put_quickly(0));
}

TEST_F(InitiatorTest, AStreamsHeaderHoldsLaterPutsBackButNotReplies) {
  StreamStart start{StreamId{0}, put(32), 64, {0, 8}};
  ASSERT_TRUE(initiator.stream(start, out).ok());
  EXPECT_TRUE(take<Send>().empty());
  initiator.put(put(8), out);
  EXPECT_TRUE(take<Send>().empty());
  Reply reply;
  reply.target = peer;
  initiator.reply(reply, out);
  EXPECT_EQ(take<Send>().size(), 1u);
  out.clear();
  ASSERT_TRUE(initiator.stream(StreamAppend{StreamId{0}, {8, 8}, false}, out).ok());
  const auto sends = take<Send>();
  ASSERT_EQ(sends.size(), 2u);  // the stream's first packet, then the put
  EXPECT_EQ(sends[0].pieces.size(), 2u);
  EXPECT_EQ(sends[1].packet.message_length, 8u);
}

TEST_F(InitiatorTest, AProcessPutsPacketsLeaveFilledAndInOrder) {
  initiator.process_put({put(40), 64, ContextId{0}}, out);
  const auto begun = take<BufferPacket>();
  ASSERT_EQ(begun.size(), 2u);  // there are two slots
  const Owner owner = executions[begun[0].her].owner;
  EXPECT_EQ(owner.kind, OwnerKind::process_put);
  EXPECT_EQ(initiator.process_put_work(owner.slot).hers_open, 2u);
  EXPECT_EQ(initiator.handler_objects(owner.slot).memory.length, 64u);
  out.clear();
  initiator.packet_filled(OutboundSlotId{executions[begun[1].her].outbound});
  EXPECT_FALSE(initiator.emit_due());
  initiator.packet_filled(OutboundSlotId{executions[begun[0].her].outbound});
  ASSERT_TRUE(initiator.emit_due());
  initiator.emit(out);
  const auto sends = take<Send>();
  ASSERT_EQ(sends.size(), 2u);
  EXPECT_EQ(sends[0].packet.offset, 0u);
  EXPECT_EQ(sends[1].packet.offset, 16u);
  out.clear();
  initiator.packet_left(sends[0].slot, out);
  EXPECT_EQ(take<BufferPacket>().size(), 1u);  // the third has a slot
}

}  // namespace
}  // namespace spinloom::nic
