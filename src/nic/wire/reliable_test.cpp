// What a stage is: its configuration, its numbers, the lives and strangers it tells apart.
#include "wire/reliable_bed.hpp"
#include "wire/reliable_impl.hpp"

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
  Out out;
  ASSERT_TRUE(sender->on_send(Time{0}, put_packet(1, bytes, 0, 10), {}, out).ok());
  const Datagrams to_first_life = take(out);
  ReliableConfig second;
  second.epoch = 2;
  const auto reborn = stage(b, a, second);
  Out back;
  EXPECT_FALSE(reborn->on_datagram(Time{1}, to_first_life[0], back).ok());
  EXPECT_EQ(reborn->counts().stale, 1u);
  EXPECT_TRUE(back.deliver.empty());

  nic::Packet packet = put_packet(1, bytes, 0, 10);
  std::swap(packet.source, packet.target);
  ASSERT_TRUE(reborn->on_send(Time{1}, packet, {}, back).ok());
  const Datagrams from_second_life = take(back);
  EXPECT_FALSE(sender->on_datagram(Time{2}, from_second_life[0], out).ok());
  ASSERT_EQ(out.lost.size(), 1u);
  EXPECT_EQ(out.lost[0].why, LostWhy::restarted);
  EXPECT_TRUE(out.deliver.empty());
  EXPECT_FALSE(sender->add_peer(b, 1).ok()) << "that life is over";
  ASSERT_TRUE(sender->add_peer(b, 2).ok());
  EXPECT_TRUE(sender->on_datagram(Time{3}, from_second_life[0], out).ok());
  EXPECT_EQ(out.deliver.size(), 1u);
}

TEST(Reliable, StrangersChangeNothing) {
  const auto receiver = stage(b, a);
  ReliableConfig other;
  other.secret = {1, 2};
  const auto stranger = stage(a, b, other);
  const auto unknown = std::make_unique<Reliable>(nic::Rank{7}, ReliableConfig{});
  ASSERT_TRUE(unknown->add_peer(b, 1).ok());
  const std::vector<uint8_t> bytes = content(1, 10);
  Out out;
  Out back;
  ASSERT_TRUE(stranger->on_send(Time{0}, put_packet(1, bytes, 0, 10), {}, out).ok());
  ASSERT_TRUE(unknown->on_send(Time{0}, put_packet(1, bytes, 0, 10), {}, out).ok());
  for (const auto& datagram : take(out)) EXPECT_FALSE(receiver->on_datagram(Time{1}, datagram, back).ok());
  EXPECT_EQ(receiver->counts().foreign, 2u);
  EXPECT_TRUE(back.transmit.empty() && back.deliver.empty() && back.lost.empty());
}

}  // namespace
}  // namespace spinloom::wire
