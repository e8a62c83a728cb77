// Tests of sending: flags, datagrams, windows, and when buffers are free.
#include <algorithm>

#include "nic/wire/testing/reliable_bed.hpp"

namespace spinloom::wire {
namespace {

using namespace test;

TEST(Reliable, SlmpFlagsOfTheThreeLevels) {
  const std::vector<uint8_t> bytes = content(1, 3000);
  const struct {
    Reliability reliability;
    std::vector<uint16_t> flags;
    uint64_t in_flight;
  } levels[] = {{Reliability::none, {0, 0, slmp::eom}, 0},
                {Reliability::message, {slmp::syn, 0, slmp::syn | slmp::eom}, 2},
                {Reliability::segment, {slmp::syn, slmp::syn, slmp::syn | slmp::eom}, 3}};
  for (const auto& level : levels) {
    const auto sender = stage(a, b);
    const auto receiver = stage(b, a);
    Output out;
    SendOptions options;
    options.reliability = level.reliability;
    for (uint64_t offset = 0; offset < 3000; offset += 1000) {
      ASSERT_TRUE(sender->on_send(Time{0}, put_packet(9, bytes, offset, 1000), options, out).ok());
    }
    EXPECT_EQ(out.message_sent.size(), level.in_flight == 0 ? 1u : 0u) << "nobody reads the buffer again";
    std::vector<uint16_t> flags;
    Output back;
    for (const auto& datagram : take(out)) {
      EXPECT_EQ(header_of(datagram).offset, flags.size() * 1000);
      EXPECT_EQ(header_of(datagram).message_id, 0u);
      flags.push_back(header_of(datagram).flags & ~slmp::now);
      EXPECT_TRUE(receiver->on_datagram(Time{1}, datagram, back).ok());
    }
    EXPECT_EQ(flags, level.flags);
    EXPECT_EQ(back.deliver.size(), 3u);
    receiver->on_timer(Time{1}, back);
    const Datagrams acks = take(back);
    EXPECT_EQ(acks.size(), level.in_flight == 0 ? 0u : 1u) << "one for all, at once: the sender's buffer waits for it";
    for (const auto& ack : acks) {
      EXPECT_EQ(open_datagram({}, ack)->body.size(), 0u) << "no segment is missing";
      EXPECT_EQ(header_of(ack).flags, slmp::ack);
      EXPECT_EQ(header_of(ack).received, level.in_flight);
      EXPECT_TRUE(sender->on_datagram(Time{2}, ack, out).ok());
    }
    EXPECT_EQ(out.message_sent, std::vector<uint64_t>{9});
    EXPECT_TRUE(sender->idle());
  }
}

TEST(Reliable, APacketLargerThanADatagramLeavesAsSeveral) {
  ReliableConfig config;
  config.datagram_bytes = 600;
  const auto sender = stage(a, b, config);
  const std::vector<uint8_t> bytes = content(1, 2000);
  Output out;
  ASSERT_TRUE(sender->on_send(Time{0}, put_packet(1, bytes, 0, 2000), {}, out).ok());
  const auto receiver = stage(b, a, config);
  Output back;
  uint64_t at = 0;
  for (const auto& datagram : take(out)) {
    EXPECT_LE(datagram.size(), config.datagram_bytes);
    ASSERT_TRUE(receiver->on_datagram(Time{1}, datagram, back).ok());
    const nic::Packet& packet = back.deliver.back();
    EXPECT_EQ(packet.offset, at);
    EXPECT_EQ(packet.message_length, 2000u);
    at += packet.payload.length;
  }
  EXPECT_EQ(at, 2000u);
  EXPECT_GT(back.deliver.size(), 3u);
  for (const nic::Packet& packet : back.deliver) {
    EXPECT_TRUE(packet.is_last() || (packet.offset + packet.payload.length) % nic::cut_bytes == 0) << packet.offset;
  }

  nic::Packet atomic = put_packet(2, bytes, 0, 512);
  atomic.operation = nic::Operation::atomic;
  atomic.message_length = 512;
  const Status refused = sender->on_send(Time{0}, atomic, {}, out);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("datagram_bytes"), std::string::npos);
}

TEST(Reliable, BothWindowsHold) {
  ReliableConfig config;
  config.window = 8;
  const auto sender = stage(a, b, config);
  const auto receiver = stage(b, a, config);
  const std::vector<uint8_t> bytes = content(1, 100);
  Output out;
  for (uint64_t message = 0; message < 40; ++message) {
    ASSERT_TRUE(sender->on_send(Time{0}, put_packet(message, bytes, 0, 100), {}, out).ok());
  }
  Datagrams sent = take(out);
  EXPECT_EQ(sent.size(), 8u) << "its own window";
  Output back;
  receiver->set_receive_window(Time{1}, a, 0, back);  // the engine behind the receiver takes nothing
  for (const auto& datagram : sent) ASSERT_TRUE(receiver->on_datagram(Time{1}, datagram, back).ok());
  for (const auto& ack : acks_of(*receiver, Time{2}, back)) ASSERT_TRUE(sender->on_datagram(Time{2}, ack, out).ok());
  EXPECT_EQ(take(out).size(), 0u) << "the receiver's window";
  ASSERT_NE(sender->timer(), Time::never());
  sender->on_timer(sender->timer(), out);
  const Datagrams probes = take(out);
  ASSERT_EQ(probes.size(), 1u) << "is there room now?";
  EXPECT_EQ(open_datagram({}, probes[0])->body.size(), 0u);
  ASSERT_TRUE(receiver->on_datagram(Time{3}, probes[0], back).ok());
  for (const auto& ack : acks_of(*receiver, Time{4}, back)) ASSERT_TRUE(sender->on_datagram(Time{4}, ack, out).ok());
  EXPECT_EQ(take(out).size(), 0u) << "no";
  receiver->set_receive_window(Time{1}, a, 3, back);
  for (const auto& ack : acks_of(*receiver, Time{5}, back)) ASSERT_TRUE(sender->on_datagram(Time{5}, ack, out).ok());
  EXPECT_EQ(take(out).size(), 3u);
}

TEST(Reliable, AnswersPassWhatWaitsForRoom) {
  const auto sender = stage(a, b);
  const auto receiver = stage(b, a);
  const std::vector<uint8_t> bytes = content(1, 100);
  Output out;
  Output back;
  receiver->set_receive_window(Time{1}, a, 0, back);
  uint64_t given = 0;
  while (sender->waiting_segments(b) < 10) {
    ASSERT_TRUE(sender->on_send(Time{0}, put_packet(given++, bytes, 0, 100), {}, out).ok());
    for (const auto& datagram : take(out)) ASSERT_TRUE(receiver->on_datagram(Time{1}, datagram, back).ok());
    for (const auto& ack : acks_of(*receiver, Time{2}, back)) ASSERT_TRUE(sender->on_datagram(Time{2}, ack, out).ok());
  }
  const uint64_t delivered = back.deliver.size();
  EXPECT_EQ(delivered, given - 10);
  nic::Packet ack = put_packet(7, {}, 0, 0);
  ack.operation = nic::Operation::ack;
  nic::Packet reply = put_packet(given, bytes, 0, 100);
  reply.operation = nic::Operation::reply;
  for (const nic::Packet& answer : {ack, reply}) ASSERT_TRUE(sender->on_send(Time{3}, answer, {}, out).ok());
  for (const auto& datagram : take(out)) ASSERT_TRUE(receiver->on_datagram(Time{4}, datagram, back).ok());
  ASSERT_EQ(back.deliver.size(), delivered + 2);
  EXPECT_EQ(back.deliver[delivered].operation, nic::Operation::ack);
  EXPECT_EQ(back.deliver[delivered + 1].operation, nic::Operation::reply);
  for (const auto& one : acks_of(*receiver, Time{5}, back)) ASSERT_TRUE(sender->on_datagram(Time{5}, one, out).ok());
  EXPECT_EQ(sender->waiting_segments(b), 10u) << "these find no room";
  receiver->set_receive_window(Time{1}, a, 100, back);
  for (const auto& one : take(back)) ASSERT_TRUE(sender->on_datagram(Time{6}, one, out).ok());
  for (const auto& datagram : take(out)) ASSERT_TRUE(receiver->on_datagram(Time{7}, datagram, back).ok());
  EXPECT_EQ(back.deliver.size(), given + 2) << "each put once, in its order";
  for (uint64_t i = 0; i < 10; ++i) EXPECT_EQ(back.deliver[delivered + 2 + i].message, given - 10 + i);
}

TEST(Reliable, BuffersAreFreeWhenNobodyReadsThemAgain) {
  ReliableConfig config;
  config.copy_bytes = 64;
  const auto sender = stage(a, b, config);
  const std::vector<uint8_t> bytes = content(1, 200);
  const std::vector<uint8_t> small = content(2, 64);
  Output out;
  ASSERT_TRUE(sender->on_send(Time{0}, put_packet(1, small, 0, 64), {}, out).ok());
  EXPECT_EQ(out.message_sent, std::vector<uint64_t>{1}) << "copied";
  ASSERT_TRUE(sender->on_send(Time{0}, put_packet(2, bytes, 0, 200), {}, out).ok());
  EXPECT_EQ(out.message_sent.size(), 1u) << "referred to until it is acknowledged";
  SendOptions slot;
  slot.ticket = 55;
  ASSERT_TRUE(sender->on_send(Time{0}, put_packet(3, bytes, 0, 200), slot, out).ok());
  EXPECT_TRUE(out.released.empty());
  slot.ticket = 56;
  slot.copy = true;
  ASSERT_TRUE(sender->on_send(Time{0}, put_packet(4, bytes, 0, 200), slot, out).ok());
  EXPECT_EQ(out.released, std::vector<uint64_t>{56});
  const auto receiver = stage(b, a, config);
  Output back;
  for (const auto& datagram : take(out)) ASSERT_TRUE(receiver->on_datagram(Time{1}, datagram, back).ok());
  for (const auto& ack : acks_of(*receiver, Time{2}, back)) ASSERT_TRUE(sender->on_datagram(Time{2}, ack, out).ok());
  EXPECT_EQ(out.message_sent, (std::vector<uint64_t>{1, 2})) << "not those with tickets";
  EXPECT_EQ(out.released, (std::vector<uint64_t>{56, 55}));
}

// The driver may transmit a datagram after the acknowledgement of an earlier transmission of it has come: what it
// refers to must be kept.
TEST(Reliable, ACopiedPayloadIsThereUntilItsDatagramsAreTransmitted) {
  for (const size_t length : {1u, 511u, 512u, 513u, 1000u}) {
    SCOPED_TRACE(length);
    const auto sender = stage(a, b);
    const auto receiver = stage(b, a);
    const std::vector<uint8_t> bytes = content(1, length);
    SendOptions options;
    options.copy = true;
    Output out;
    ASSERT_TRUE(sender->on_send(Time{0}, put_packet(1, bytes, 0, length), options, out).ok());
    ASSERT_EQ(out.transmit.size(), 1u);
    const std::vector<uint8_t> sent = out.datagram(out.transmit[0]);
    Output back;
    ASSERT_TRUE(receiver->on_datagram(Time{1}, sent, back).ok());
    for (const auto& ack : acks_of(*receiver, Time{2}, back)) ASSERT_TRUE(sender->on_datagram(Time{2}, ack, out).ok());
    ASSERT_EQ(sender->unacknowledged(b).segments, 0u);
    const std::span<const uint8_t> referred = out.transmit[0].payload;
    const auto holds = [&](const std::vector<uint8_t>& kept) {
      return kept.data() <= referred.data() && referred.data() + referred.size() <= kept.data() + kept.size();
    };
    ASSERT_TRUE(referred.empty() || std::ranges::any_of(out.retained, holds)) << "it refers to bytes that nobody keeps";
    EXPECT_EQ(out.datagram(out.transmit[0]), sent);
  }
}

TEST(Reliable, TheWindowGrowsWhileNothingIsLostAndShrinksOnLoss) {
  ReliableConfig config;
  config.window = 200;
  Pair pair(config);
  EXPECT_EQ(pair.ends[0]->congestion_window(b), config.window_first);
  for (int i = 0; i < 2000; ++i) pair.put(0);
  while (pair.in_flight() > 1500) {
    pair.carry(0);
    pair.carry(1);
  }
  EXPECT_EQ(pair.ends[0]->congestion_window(b), 200u);
  Datagrams sent = take(pair.out[0]);
  ASSERT_GT(sent.size(), 100u);
  for (const size_t lost : {60, 30, 3}) sent.erase(sent.begin() + lost);
  pair.give(1, sent);
  pair.carry(1);
  EXPECT_EQ(pair.ends[0]->congestion_window(b), 150u) << "once for all losses of a window";
  pair.carry(0);
  pair.carry(1);
  const uint32_t calm = pair.ends[0]->congestion_window(b);
  EXPECT_LE(calm, 152u) << "then it grows by one for each window";
  take(pair.out[0]);
  pair.time_out();
  EXPECT_EQ(pair.ends[0]->congestion_window(b), calm) << "the peer may have been busy";
  pair.time_out();
  EXPECT_EQ(pair.ends[0]->congestion_window(b), calm / 2);
  for (int i = 0; i < 10; ++i) pair.time_out();
  EXPECT_EQ(pair.ends[0]->congestion_window(b), ReliableConfig::window_min);
}

// After a loss it grows by one for each window, up to that of the configuration.
TEST(Reliable, TheWindowDoesNotGrowBeyondThatOfTheConfiguration) {
  ReliableConfig config;
  config.window = config.window_first = 20;
  Pair pair(config);
  for (int i = 0; i < 500; ++i) pair.put(0);
  Datagrams sent = take(pair.out[0]);
  ASSERT_EQ(sent.size(), 20u);
  sent.erase(sent.begin() + 3);
  pair.give(1, sent);
  pair.carry(1);
  ASSERT_EQ(pair.ends[0]->congestion_window(b), 15u);
  while (!pair.ends[0]->idle()) {
    pair.carry(0);
    pair.ends[1]->acknowledge(pair.now, pair.out[1]);
    pair.carry(1);
    ASSERT_LE(pair.ends[0]->congestion_window(b), 20u);
  }
  EXPECT_EQ(pair.ends[0]->congestion_window(b), 20u);
}

TEST(Reliable, LossesAreRepeatedWithinTheWindow) {
  ReliableConfig config;
  config.window = 100;
  config.window_first = 100;
  Pair pair(config);
  for (int i = 0; i < 100; ++i) pair.put(0);
  Datagrams sent = take(pair.out[0]);
  sent.erase(sent.begin(), sent.begin() + 90);
  pair.give(1, sent);
  pair.carry(1);
  EXPECT_EQ(take(pair.out[0]).size(), 75u) << "of 90 that are lost";
}

}  // namespace
}  // namespace spinloom::wire
