// Short puts that the driver reads while it performs their Send.
#include "nic/portals/testing/nic_bench.hpp"

namespace spinloom::nic {
namespace {

NicLimits at_once_limits() {
  NicLimits limits = small_limits();
  limits.at_once_bytes = 16;
  return limits;
}

Put put_of(Bench& bench, uint64_t length) {
  Put put;
  put.local = bench.memory.data();
  put.length = length;
  put.target = Rank{0};
  put.portal = PortalIndex{3};
  put.queue = bench.queue;
  put.counter = CounterId{0};
  put.ct_send = true;
  put.user_ptr = 7;
  return put;
}

void give(Bench& bench, const Put& put) {
  bench.out.clear();
  bench.nic.on_put(put, bench.out);
}

TEST(AtOnce, TheSendIsFollowedByItsEventAndCountAndNothingIsLeft) {
  Bench bench(at_once_limits());
  bench.good(CounterAlloc{CounterId{0}});
  give(bench, put_of(bench, 16));
  const Send send = bench.only<Send>();
  EXPECT_TRUE(send.at_once && send.last && send.packet.is_header() && send.packet.is_last());
  EXPECT_EQ(send.packet.payload.bytes, bench.memory.data());
  EXPECT_TRUE(std::holds_alternative<Send>(bench.out.list.front())) << "read first, told afterwards";
  EXPECT_EQ(bench.event(EventKind::send).user_ptr, 7u);
  EXPECT_EQ(bench.only<PostCounter>().value, (CounterValue{1, 0}));
  bench.expect_idle();
}

TEST(AtOnce, ADriverThatReadsNothingAtOnceIsNotAskedToForAnEmptyPutEither) {
  Bench bench;
  bench.good(CounterAlloc{CounterId{0}});
  give(bench, put_of(bench, 0));
  EXPECT_FALSE(bench.only<Send>().at_once);
  EXPECT_TRUE(bench.kinds().empty()) << "its send event comes when it has been read";
}

TEST(AtOnce, OnlyTheTargetAcknowledges) {
  Bench bench(at_once_limits());
  bench.good(CounterAlloc{CounterId{0}});
  Put put = put_of(bench, 8);
  put.ack_request = AckRequest::ack;
  give(bench, put);
  Packet ack = ack_for(bench.only<Send>().packet, 8);
  ack.source = Rank{3};
  bench.arrive(ack);
  EXPECT_TRUE(bench.kinds().empty());
  EXPECT_EQ(bench.nic.state().refused_packets, 1u);
}

TEST(AtOnce, MessagesHaveDifferentNames) {
  Bench bench(at_once_limits());
  bench.good(CounterAlloc{CounterId{0}});
  give(bench, put_of(bench, 1));
  const uint64_t first = bench.only<Send>().packet.message;
  give(bench, put_of(bench, 1));
  EXPECT_NE(bench.only<Send>().packet.message, first);
}

TEST(AtOnce, AnAcknowledgementIsWaitedFor) {
  Bench bench(at_once_limits());
  bench.good(CounterAlloc{CounterId{0}});
  Put put = put_of(bench, 8);
  put.ack_request = AckRequest::ack;
  give(bench, put);
  EXPECT_EQ(bench.nic.state().messages_outgoing, 1u);
  bench.arrive(ack_for(bench.only<Send>().packet, 8));
  EXPECT_EQ(bench.event(EventKind::ack).fail, Fail::ok);
  bench.expect_idle();
}

TEST(AtOnce, NobodyAcknowledgesWhatAskedForNothing) {
  Bench bench(at_once_limits());
  bench.good(CounterAlloc{CounterId{0}});
  give(bench, put_of(bench, 8));
  Packet ack = ack_for(bench.only<Send>().packet, 8);
  ack.fields.ack_request = AckRequest::none;
  bench.arrive(ack);
  EXPECT_EQ(bench.nic.state().refused_packets, 1u);
}

TEST(AtOnce, WhatWaitsIsNotOvertaken) {
  Bench bench(at_once_limits());
  bench.good(CounterAlloc{CounterId{0}});
  bench.good(StreamStart{StreamId{0}, put_of(bench, 64), 64, PutRegion{0, 8}});
  EXPECT_TRUE(bench.actions<Send>().empty()) << "its first packet is not complete";
  give(bench, put_of(bench, 8));
  EXPECT_TRUE(bench.actions<Send>().empty()) << "headers leave in the order of the puts";
}

TEST(AtOnce, LongerPutsAndTriggeredOnesGoAsBefore) {
  Bench bench(at_once_limits());
  bench.good(CounterAlloc{CounterId{0}});
  give(bench, put_of(bench, 17));
  EXPECT_FALSE(bench.actions<Send>().front().at_once);
  EXPECT_EQ(bench.actions<Send>().size(), 2u);
  Bench other(at_once_limits());
  other.good(CounterAlloc{CounterId{0}});
  other.good(put_of(other, 8), Trigger{CounterId{0}, 1, 0});
  other.good(CounterInc{CounterId{0}, {1, 0}});
  other.go_on();
  EXPECT_TRUE(other.only<Send>().at_once) << "what a counter fires is a put, too";
}

// Rules: P4F-11.22.
TEST(AtOnce, ToALostPeerItIsUndeliverable) {
  Bench bench(at_once_limits());
  bench.good(CounterAlloc{CounterId{0}});
  bench.out.clear();
  bench.nic.on_peer_lost(Rank{0}, bench.out);
  give(bench, put_of(bench, 8));
  EXPECT_EQ(bench.event(EventKind::send).fail, Fail::undeliverable);
  EXPECT_EQ(bench.only<PostCounter>().value, (CounterValue{0, 1}));
  bench.expect_idle();
}

TEST(AtOnce, AWrongPutIsCounted) {
  Bench bench(at_once_limits());
  Put put = put_of(bench, 8);
  give(bench, put);
  EXPECT_TRUE(bench.out.list.empty());
  EXPECT_EQ(bench.nic.state().failed_commands, 1u) << "its counter does not exist";
}

}  // namespace
}  // namespace spinloom::nic
