// The receiver of SLMP: whole messages, reports of room, repeats, contradictions, and its limits of memory.
#include "ethernet/slmp/receiver.hpp"

#include <gtest/gtest.h>

#include <string>

namespace spinloom::slmp {
namespace {

std::vector<uint8_t> packet(const Header& header, const std::string& payload = "") {
  const auto bytes = write(header);
  std::vector<uint8_t> out(bytes.begin(), bytes.end());
  out.insert(out.end(), payload.begin(), payload.end());
  return out;
}

std::string as_text(const Receiver::Message& message) { return {message.bytes.begin(), message.bytes.end()}; }

constexpr uint64_t peer = 1;
constexpr Time start{0};

// Rules: SLMP-14, SLMP-46.
TEST(SlmpReceiver, AMessageIsWholeWhenItsEndAndAllBytesAreThere) {
  Receiver receiver({});
  auto got = receiver.on_datagram(start, peer, packet({syn, 7, 0}, "abcd"));
  EXPECT_EQ(got->acknowledgement, (Header{ack, 7, 0}));
  got = receiver.on_datagram(start, peer, packet({syn | eom, 7, 8}, "ij"));
  EXPECT_EQ(got->acknowledgement, (Header{ack, 7, 8}));
  EXPECT_FALSE(got->message);
  got = receiver.on_datagram(start, peer, packet({0, 7, 4}, "efgh"));
  EXPECT_FALSE(got->acknowledgement) << "no SYN, no ACK";
  ASSERT_TRUE(got->message);
  EXPECT_EQ(as_text(*got->message), "abcdefghij");
  EXPECT_EQ(got->message->id, 7);
  EXPECT_EQ(receiver.bytes_held(), 0);
}

TEST(SlmpReceiver, AnEmptyMessageIsOnePacket) {
  Receiver receiver({});
  const auto got = receiver.on_datagram(start, peer, packet({syn | eom, 7, 0}));
  ASSERT_TRUE(got->message);
  EXPECT_TRUE(got->message->bytes.empty());
}

// The receiver has 100 B of room, for packets of 10 B. A hole counts as taken: the packet behind a hole of 10 B leaves
// 80 B, the next one 70 B.
// Rules: SLMP-52.
TEST(SlmpReceiver, ReportsItsRoomToWhoAsks) {
  Receiver receiver({.bytes_max = 100});
  const std::string ten(10, 'a');
  const auto room = [&](const Header& header, const std::string& payload) {
    return receiver.on_datagram(start, peer, packet(header, payload))->acknowledgement;
  };
  EXPECT_EQ(room({syn | report, 7, 10}, ten), (Header{ack | report, 7, 10, 8}));
  EXPECT_EQ(room({syn | report, 7, 20}, ten), (Header{ack | report, 7, 20, 7}));
  EXPECT_EQ(room({syn | report, 7, 20}, ten), (Header{ack | report, 7, 20, 7})) << "a repeat";
  EXPECT_EQ(room({syn, 7, 30}, ten), (Header{ack, 7, 30})) << "nobody asked";
  EXPECT_EQ(room({syn | report, 7, 90}, ten), (Header{ack | report, 7, 90, 0}));
  EXPECT_EQ(room({syn | report | eom, 8, 0}, ""), (Header{ack | report, 8, 0, 0})) << "an empty message";
}

// Rules: SLMP-17, SLMP-48.
TEST(SlmpReceiver, RepeatsAreAcknowledgedAndChangeNothing) {
  Receiver receiver({});
  for (int i = 0; i < 2; ++i) {
    const auto got = receiver.on_datagram(start, peer, packet({syn, 7, 0}, i == 0 ? "abcd" : "XXXX"));
    EXPECT_EQ(got->acknowledgement, (Header{ack, 7, 0}));
  }
  const auto end = packet({syn | eom, 7, 4}, "e");
  const auto whole = receiver.on_datagram(start, peer, end);
  ASSERT_TRUE(whole->message);
  EXPECT_EQ(as_text(*whole->message), "abcde");
  const auto repeat = receiver.on_datagram(start, peer, end);
  EXPECT_TRUE(repeat->acknowledgement);
  EXPECT_FALSE(repeat->message);
  EXPECT_EQ(receiver.counts().repeated, 2);
  EXPECT_EQ(receiver.counts().messages, 1);
}

// Rules: SLMP-46.
TEST(SlmpReceiver, AnEndWithoutNewBytesIsAnEnd) {
  for (const uint32_t offset : {0, 4}) {
    Receiver receiver({});
    EXPECT_FALSE(receiver.on_datagram(start, peer, packet({syn, 7, 0}, "abcd"))->message);
    const auto got = receiver.on_datagram(start, peer, packet({syn | eom, 7, offset}, offset == 0 ? "abcd" : ""));
    ASSERT_TRUE(got->message);
    EXPECT_EQ(as_text(*got->message), "abcd");
  }
}

// Rules: SLMP-48, SLMP-49.
TEST(SlmpReceiver, AnIdIsFreeAgainAfterAWhile) {
  Receiver receiver({});
  const auto whole = packet({syn | eom, 7, 0}, "abc");
  EXPECT_TRUE(receiver.on_datagram(start, peer, whole)->message);
  EXPECT_FALSE(receiver.on_datagram(start, peer, whole)->message);
  EXPECT_TRUE(receiver.on_datagram(start, peer + 1, whole)->message) << "another peer's message";
  EXPECT_TRUE(receiver.on_datagram(start + ReceiverConfig{}.linger + Time{1}, peer, whole)->message);
}

// Rules: SLMP-47.
TEST(SlmpReceiver, WhatContradictsItselfIsMalformedAndNotAcknowledged) {
  Receiver receiver({});
  EXPECT_TRUE(receiver.on_datagram(start, peer, packet({syn, 7, 4}, "efgh")).ok());
  EXPECT_FALSE(receiver.on_datagram(start, peer, packet({syn | eom, 7, 0}, "ab")).ok()) << "an end before byte 8";
  EXPECT_TRUE(receiver.on_datagram(start, peer, packet({syn | eom, 7, 8}, "ij")).ok());
  EXPECT_FALSE(receiver.on_datagram(start, peer, packet({syn | eom, 7, 8}, "ijk")).ok()) << "another end";
  EXPECT_FALSE(receiver.on_datagram(start, peer, packet({syn, 7, 10}, "k")).ok()) << "beyond the end";
  EXPECT_FALSE(receiver.on_datagram(start, peer, packet({ack, 7, 0})).ok());
  EXPECT_FALSE(receiver.on_datagram(start, peer, packet({syn, 7, 0xffffffff}, "ab")).ok()) << "beyond 4 GiB";
  EXPECT_EQ(receiver.counts().malformed, 5);
  EXPECT_TRUE(receiver.on_datagram(start, peer, packet({syn, 7, 0}, "abcd"))->message);
}

// Rules: SLMP-50.
TEST(SlmpReceiver, MemoryIsBoundedAndIdleMessagesMakeRoom) {
  Receiver receiver({.bytes_max = 8, .messages_max = 2});
  EXPECT_TRUE(receiver.on_datagram(start, peer, packet({syn, 1, 0}, "abcd")).ok());
  EXPECT_EQ(receiver.on_datagram(start, peer, packet({syn, 1, 8}, "x")).error().code, Code::exhausted);
  EXPECT_TRUE(receiver.on_datagram(start, peer, packet({syn, 2, 0}, "abcd")).ok());
  EXPECT_EQ(receiver.on_datagram(start, peer, packet({syn, 3, 0}, "")).error().code, Code::exhausted);
  EXPECT_EQ(receiver.counts().refused, 2);
  const Time later = start + ReceiverConfig{}.idle_max + Time{1};
  EXPECT_TRUE(receiver.on_datagram(later, peer, packet({syn, 3, 0}, "abcd")).ok());
  EXPECT_EQ(receiver.counts().abandoned, 1);
  EXPECT_LE(receiver.bytes_held(), 8);
}

TEST(SlmpReceiver, AMessageDoesNotMakeRoomForItself) {
  Receiver receiver({.bytes_max = 8});
  EXPECT_TRUE(receiver.on_datagram(start, peer, packet({syn, 1, 0}, "abcd")).ok());
  const Time later = start + ReceiverConfig{}.idle_max + Time{1};
  EXPECT_EQ(receiver.on_datagram(later, peer, packet({syn, 1, 8}, "x")).error().code, Code::exhausted);
  EXPECT_EQ(receiver.messages_held(), 1);
  EXPECT_EQ(receiver.counts().abandoned, 0);
}

// Rules: SLMP-50.
TEST(SlmpReceiver, PiecesAreBoundedAndGapsCanStillBeFilled) {
  Receiver receiver({.ranges_max = 2});
  EXPECT_TRUE(receiver.on_datagram(start, peer, packet({syn, 1, 0}, "a")).ok());
  EXPECT_TRUE(receiver.on_datagram(start, peer, packet({syn, 1, 2}, "c")).ok());
  EXPECT_EQ(receiver.on_datagram(start, peer, packet({syn, 1, 4}, "e")).error().code, Code::exhausted);
  EXPECT_TRUE(receiver.on_datagram(start, peer, packet({syn, 1, 1}, "b")).ok());
  EXPECT_TRUE(receiver.on_datagram(start, peer, packet({syn, 1, 4}, "e")).ok());
}

}  // namespace
}  // namespace spinloom::slmp
