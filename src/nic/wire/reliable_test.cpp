// Tests of a stage by itself: its configuration, its numbers, the lives and strangers that it tells apart.
#include "nic/wire/packet_format.hpp"
#include "nic/wire/reliable_impl.hpp"
#include "nic/wire/testing/reliable_bed.hpp"

namespace spinloom::wire {
namespace {

using namespace test;

TEST(Reliable, SequencesGoAround) {
  EXPECT_GT(distance(0xffffffff, 0), 0);
  EXPECT_LT(distance(0, 0xffffffff), 0);
}

TEST(Reliable, ConfigurationsThatCannotWork) {
  ReliableConfig config;
  EXPECT_TRUE(check(config).ok());
  config.datagram_bytes = 100;
  EXPECT_NE(check(config).error().message.find("datagram_bytes"), std::string::npos);
  config = {};
  config.window = 5000;
  EXPECT_NE(check(config).error().message.find("window"), std::string::npos);
  config = {};
  config.ack_delay = config.timeout_min;
  EXPECT_NE(check(config).error().message.find("ack_delay"), std::string::npos);
  config = {};
  config.timeout_min = config.timeout_first + 1_ps;
  EXPECT_FALSE(check(config).ok());
}

TEST(Reliable, LivesAreToldApart) {
  const auto sender = stage(a, b);  // knows life 1 of b
  const std::vector<uint8_t> bytes = content(1, 10);
  Output out;
  ASSERT_TRUE(sender->on_send(Time{0}, put_packet(1, bytes, 0, 10), {}, out).ok());
  const Datagrams to_first_life = take(out);
  ReliableConfig second;
  second.epoch = 2;
  const auto reborn = stage(b, a, second);
  Output back;
  EXPECT_FALSE(reborn->on_datagram(Time{1}, to_first_life[0], back).ok());
  EXPECT_EQ(reborn->counts().stale, 1u);
  EXPECT_TRUE(back.deliver.empty());

  nic::Packet packet = put_packet(1, bytes, 0, 10);
  std::swap(packet.source, packet.target);
  ASSERT_TRUE(reborn->on_send(Time{1}, packet, {}, back).ok());
  const Datagrams from_second_life = take(back);
  EXPECT_FALSE(sender->on_datagram(Time{2}, from_second_life[0], out).ok());
  ASSERT_EQ(out.lost.size(), 1u);
  EXPECT_EQ(out.lost[0].reason, LostReason::restarted);
  EXPECT_TRUE(out.deliver.empty());
  EXPECT_FALSE(sender->add_peer(b, 1).ok()) << "that life is over";
  ASSERT_TRUE(sender->add_peer(b, 2).ok());
  EXPECT_TRUE(sender->on_datagram(Time{3}, from_second_life[0], out).ok());
  EXPECT_EQ(out.deliver.size(), 1u);
}

// A segment is noted by its sequence modulo the window's most: one that is a whole window ahead would stand for the
// next.
TEST(Reliable, ASegmentAWholeWindowAheadIsBeyondTheWindow) {
  const ReliableConfig config;
  const auto sender = stage(a, b, config);
  const auto receiver = stage(b, a, config);
  const std::vector<uint8_t> bytes = content(1, 10);
  Output out;
  ASSERT_TRUE(sender->on_send(Time{0}, put_packet(1, bytes, 0, bytes.size()), {}, out).ok());
  const DatagramHeader next = header_of(take(out).front());
  const auto ahead_by = [&](uint32_t segments) {
    DatagramHeader header = next;
    header.sequence += segments;
    std::vector<uint8_t> made;
    const size_t at = begin_datagram(header, made);
    encode(put_packet(1, bytes, 0, bytes.size()), made);
    seal_datagram(config.secret, at, made);
    return made;
  };
  Output back;
  EXPECT_FALSE(receiver->on_datagram(Time{1}, ahead_by(ReliableConfig::window_max), back).ok());
  EXPECT_EQ(receiver->counts().malformed, 1u);
  EXPECT_TRUE(back.deliver.empty());
  EXPECT_TRUE(receiver->on_datagram(Time{2}, ahead_by(ReliableConfig::window_max - 1), back).ok());
  EXPECT_EQ(receiver->counts().malformed, 1u);
}

TEST(Reliable, AnErrorSaysWhetherTheSenderIsKnown) {
  const auto receiver = stage(b, a);
  const std::vector<uint8_t> bytes = content(1, 10);
  const auto refused = [&](nic::Rank source, nic::Rank target) {
    const auto sender = stage(source, target);
    nic::Packet packet = put_packet(1, bytes, 0, 10);
    packet.source = source;
    packet.target = target;
    Output out;
    EXPECT_TRUE(sender->on_send(Time{0}, packet, {}, out).ok());
    Output back;
    return receiver->on_datagram(Time{1}, take(out).front(), back).error().message;
  };
  EXPECT_EQ(refused(a, nic::Rank{7}), "datagram: from rank 0 to rank 7; this is rank 1");
  EXPECT_EQ(refused(nic::Rank{7}, b), "datagram: from rank 7 to rank 1; this is rank 1, which does not know it");
}

TEST(Reliable, StrangersChangeNothing) {
  const auto receiver = stage(b, a);
  ReliableConfig other;
  other.secret = {1, 2};
  const auto stranger = stage(a, b, other);
  const auto unknown = std::make_unique<Reliable>(nic::Rank{7}, ReliableConfig{});
  ASSERT_TRUE(unknown->add_peer(b, 1).ok());
  const std::vector<uint8_t> bytes = content(1, 10);
  Output out;
  Output back;
  ASSERT_TRUE(stranger->on_send(Time{0}, put_packet(1, bytes, 0, 10), {}, out).ok());
  ASSERT_TRUE(unknown->on_send(Time{0}, put_packet(1, bytes, 0, 10), {}, out).ok());
  for (const auto& datagram : take(out)) EXPECT_FALSE(receiver->on_datagram(Time{1}, datagram, back).ok());
  EXPECT_EQ(receiver->counts().foreign, 2u);
  EXPECT_TRUE(back.transmit.empty() && back.deliver.empty() && back.lost.empty());
}

}  // namespace
}  // namespace spinloom::wire
