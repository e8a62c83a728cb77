// Tests of acknowledgements: when a stage sends them, and what the sender does with them.
#include "nic/wire/testing/reliable_bed.hpp"

namespace spinloom::wire {
namespace {

using namespace test;

TEST(Reliable, AnAcknowledgementWaitsForAPacketThatTakesItAlong) {
  Pair pair;
  for (int round = 0; round < 100; ++round) {
    for (uint32_t from = 0; from < 2; ++from) {
      pair.put(from);
      const Datagrams sent = take(pair.out[from]);
      ASSERT_EQ(sent.size(), 1u);
      pair.give(1 - from, sent);
      EXPECT_TRUE(pair.out[1 - from].transmit.empty());
      pair.now += 1_us;
    }
  }
  EXPECT_EQ(pair.ends[0]->counts().acknowledgements + pair.ends[1]->counts().acknowledgements, 0u);
  EXPECT_EQ(pair.in_flight(), 0u) << "the packet that came last acknowledges the one before";
}

TEST(Reliable, AnAcknowledgementIsNotDelayedLongerThanItMay) {
  Pair pair;
  pair.put(0);
  pair.carry(0);
  EXPECT_TRUE(take(pair.out[1]).empty());
  EXPECT_EQ(pair.ends[1]->timer(), pair.now + pair.config.ack_delay);
  pair.now += pair.config.ack_delay;
  pair.ends[1]->on_timer(pair.now, pair.out[1]);
  pair.carry(1);
  EXPECT_EQ(pair.in_flight(), 0u);
  EXPECT_TRUE(pair.ends[0]->idle());
  EXPECT_EQ(pair.ends[1]->counts().acknowledgements, 1u);
  EXPECT_EQ(pair.ends[1]->timer(), Time::never());
}

TEST(Reliable, ASenderThatWaitsIsAcknowledgedAtOnce) {
  Pair pair;
  pair.put(0, pair.config.copy_bytes + 1);  // its buffer waits
  pair.carry(0);
  EXPECT_EQ(pair.out[1].transmit.size(), 1u);
  pair.carry(1);
  EXPECT_EQ(pair.out[0].message_sent.size(), 1u);
  EXPECT_EQ(pair.in_flight(), 0u);

  uint64_t datagrams = 0;  // a stream of short messages never stops for an acknowledgement
  for (int i = 0; i < 1000; ++i) {
    pair.put(0);
    ASSERT_EQ(pair.ends[0]->waiting_segments(b), 0u);
    pair.carry(0);
    datagrams += pair.out[1].transmit.size();
    pair.carry(1);
  }
  EXPECT_LE(datagrams, 1000u / (pair.config.window_first / 4));
}

TEST(Reliable, OneAcknowledgementForAllThatCameTogether) {
  Pair pair;
  for (int i = 0; i < 16; ++i) pair.put(0);
  pair.carry(0);
  EXPECT_EQ(pair.out[1].transmit.size(), 1u);
  pair.carry(1);
  EXPECT_EQ(pair.in_flight(), 0u);
}

TEST(Reliable, AWaitingAcknowledgementDoesNotLengthenTheRoundTrip) {
  ReliableConfig config;
  config.timeout_min = config.ack_delay + 1_ps;
  config.timeout_first = 50_us;
  Pair pair(config);
  for (int i = 0; i < 50; ++i) {
    pair.put(0);
    pair.now += 1_us;
    pair.carry(0);
    pair.now = pair.ends[1]->timer();
    pair.ends[1]->on_timer(pair.now, pair.out[1]);
    pair.now += 1_us;
    pair.carry(1);
  }
  pair.put(0);
  EXPECT_EQ(pair.ends[0]->counts().timeouts, 0u);
  EXPECT_LT(pair.ends[0]->timer(), pair.now + 3_us + config.ack_delay) << "2 us there and back";
}

TEST(Reliable, AcknowledgementsListWhatHasCome) {
  Pair pair;
  for (int i = 0; i < 12; ++i) pair.put(0);
  Datagrams sent = take(pair.out[0]);
  ASSERT_EQ(sent.size(), 12u);
  sent.erase(sent.begin() + 7);
  sent.erase(sent.begin() + 2);
  pair.give(1, sent);
  const Datagrams acks = take(pair.out[1]);
  ASSERT_EQ(acks.size(), 1u) << "at once, because segments are missing";
  const auto opened = open_datagram({}, acks[0]);
  EXPECT_EQ(opened->header.received, 2u);
  ASSERT_EQ(opened->body.size(), 2u);
  EXPECT_EQ(opened->body[0] | opened->body[1] << 8, 0b111101111) << "from segment 3 on";
  pair.give(0, acks);
  EXPECT_EQ(pair.in_flight(), 2u);
  const Datagrams again = take(pair.out[0]);
  ASSERT_EQ(again.size(), 2u) << "no time-out is needed";
  EXPECT_EQ(header_of(again[0]).sequence, 2u);
  EXPECT_EQ(header_of(again[1]).sequence, 7u);
  pair.give(1, again);
  pair.carry(1);
  EXPECT_EQ(pair.in_flight(), 0u);
  EXPECT_EQ(pair.ends[0]->counts().retransmitted, 2u);
  EXPECT_EQ(pair.ends[0]->counts().timeouts, 0u);
  EXPECT_EQ(pair.ends[1]->counts().duplicates, 0u);
}

TEST(Reliable, WhatIsLostTwiceIsSentTwiceAgainWithoutATimeOut) {
  Pair pair;
  for (int i = 0; i < 5; ++i) pair.put(0);
  Datagrams sent = take(pair.out[0]);
  sent.erase(sent.begin());
  pair.give(1, sent);
  pair.carry(1);
  EXPECT_EQ(take(pair.out[0]).size(), 1u) << "lost again";
  for (int i = 0; i < 3; ++i) pair.put(0);
  pair.carry(0);
  pair.carry(1);
  const Datagrams again = take(pair.out[0]);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(header_of(again[0]).sequence, 0u);
  EXPECT_EQ(pair.ends[0]->counts().timeouts, 0u);
}

TEST(Reliable, ATimeOutRepeatsTheOldestAndWhatFollowsFromIt) {
  Pair pair;
  for (int i = 0; i < 6; ++i) pair.put(0);
  take(pair.out[0]);  // all are lost
  pair.time_out();
  Datagrams again = take(pair.out[0]);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(header_of(again[0]).sequence, 0u);
  for (int turn = 0; turn < 3; ++turn) {
    pair.give(1, again);
    pair.carry(1);
    again = take(pair.out[0]);
  }
  EXPECT_EQ(pair.in_flight(), 0u) << "all the others were sent before it";
  EXPECT_EQ(pair.ends[0]->counts().timeouts, 1u);
  EXPECT_EQ(pair.ends[0]->counts().retransmitted, 6u);
}

TEST(Reliable, ALateAcknowledgementRepeatsNothing) {
  Pair pair;
  for (int i = 0; i < 6; ++i) pair.put(0);
  const Datagrams slow = take(pair.out[0]);
  pair.time_out();
  const Datagrams again = take(pair.out[0]);
  ASSERT_EQ(again.size(), 1u);
  pair.give(1, slow);
  pair.carry(1);
  EXPECT_TRUE(take(pair.out[0]).empty());
  EXPECT_EQ(pair.in_flight(), 0u);
  pair.give(1, again);
  EXPECT_EQ(pair.ends[1]->counts().duplicates, 1u);
}

TEST(Reliable, RoomIsToldWhenThereWasNone) {
  const auto receiver = stage(b, a);
  Output back;
  const auto told = [&](uint32_t segments) {
    receiver->set_receive_window(Time{1}, a, segments, back);
    return take(back).size();
  };
  EXPECT_EQ(told(10), 0u) << "there was room before";
  EXPECT_EQ(told(0), 0u);
  EXPECT_EQ(told(0), 0u);
  EXPECT_EQ(told(3), 1u);
  EXPECT_EQ(told(5), 0u);
}

}  // namespace
}  // namespace spinloom::wire
