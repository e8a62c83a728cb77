// Sender and receiver over links that lose, repeat and reorder packets, by seed.
#include <gtest/gtest.h>

#include <cstring>

#include "base/testing/seeds.hpp"
#include "ethernet/slmp/receiver.hpp"
#include "ethernet/slmp/testing/link.hpp"

namespace spinloom::slmp {
namespace {

using test::Faults;
using test::TestLink;

Segments random_cut(Random& random, uint64_t bytes) {
  const int64_t alignments[] = {1, 4, 64, 128, 1024};
  return {static_cast<uint32_t>(random.next()), bytes, payload_of(alignments[random.below(5)]).value(), Mode::segment};
}

SenderConfig random_config(Random& random) {
  SenderConfig config;
  config.window = static_cast<uint32_t>(1 + random.below(40));
  config.gap = {random.chance(1, 2) ? 0 : random.between(1, 50'000'000)};
  config.fixed_window = random.chance(1, 4);
  config.tries_max = 100;
  return config;
}

Faults random_faults(Random& random) {
  return {
      random.below(30), random.below(30), {random.between(1'000'000, 50'000'000)}, {random.between(0, 20'000'000'000)}};
}

// Rules: SLMP-19, SLMP-35, SLMP-43.
TEST(SlmpExchange, EveryMessageComesOnceAndWhole) {
  for_seeds(1000, [](Random& random) {
    const auto message = test::random_message(random, random.below(random.chance(1, 3) ? 3000 : 150'000));
    const Segments segments = random_cut(random, message.size());
    const SenderConfig config = random_config(random);
    Receiver receiver({});
    std::vector<Receiver::Message> got;
    TestLink link(random, random_faults(random), message, [&](Time now, std::span<const uint8_t> datagram) {
      auto outcome = receiver.on_datagram(now, 1, datagram);
      if (outcome->message) got.push_back(std::move(*outcome->message));
      return outcome->acknowledgement;
    });
    Sender sender(config, segments);
    link.run(sender, config, segments);
    ASSERT_TRUE(sender.status().ok()) << sender.status().error().message;
    ASSERT_EQ(got.size(), 1);
    ASSERT_EQ(got[0].bytes, message);
    ASSERT_EQ(receiver.bytes_held(), 0);
    ASSERT_EQ(sender.counts().sent, segments.count());
    ASSERT_EQ(sender.counts().acknowledged, segments.count());
    ASSERT_EQ(sender.counts().settled_bytes, message.size());
  });
}

// FPsPIN's receiver keeps no state: it stores each payload at its offset and answers what has SYN.
// Rules: SLMP-18, SLMP-40.
TEST(SlmpExchange, AReceiverWithoutStateIsEnough) {
  for_seeds(500, [](Random& random) {
    const auto message = test::random_message(random, random.below(100'000));
    const Segments segments = random_cut(random, message.size());
    const SenderConfig config = random_config(random);
    std::vector<uint8_t> memory(message.size());
    uint64_t ends = 0;
    TestLink link(random, random_faults(random), message, [&](Time, std::span<const uint8_t> datagram) {
      const uint16_t flags = static_cast<uint16_t>(datagram[0] << 8 | datagram[1]);
      const uint32_t offset = uint32_t{datagram[6]} << 24 | datagram[7] << 16 | datagram[8] << 8 | datagram[9];
      std::memcpy(memory.data() + offset, datagram.data() + 10, datagram.size() - 10);
      const bool first_end = (flags & 0x8000) != 0 && ++ends == 1;
      EXPECT_TRUE(!first_end || memory == message) << "the tail handler sees the whole message";
      return (flags & 0x4000) != 0 ? std::optional(Header{0x2000, segments.message_id, offset}) : std::nullopt;
    });
    Sender sender(config, segments);
    link.run(sender, config, segments);
    ASSERT_TRUE(sender.status().ok()) << sender.status().error().message;
    ASSERT_GE(ends, 1);
    ASSERT_EQ(memory, message);
  });
}

TEST(SlmpExchange, SharesOfAMessageAreTheMessage) {
  for_seeds(300, [](Random& random) {
    const auto message = test::random_message(random, 5000 + random.below(100'000));
    const Segments segments = random_cut(random, message.size());
    const SenderConfig config = random_config(random);
    Receiver receiver({});
    std::optional<Receiver::Message> got;
    TestLink link(random, random_faults(random), message, [&](Time now, std::span<const uint8_t> datagram) {
      auto outcome = receiver.on_datagram(now, 1, datagram);
      if (outcome->message) got = std::move(outcome->message);
      return outcome->acknowledgement;
    });
    const uint32_t middle = 1 + static_cast<uint32_t>(random.below(segments.count() - 1));
    for (const auto& [first, count] : {std::pair{0U, middle}, std::pair{middle, segments.count() - middle}}) {
      ASSERT_FALSE(got);
      Sender sender(config, segments, first, count);
      link.run(sender, config, segments);
      ASSERT_TRUE(sender.status().ok()) << sender.status().error().message;
    }
    ASSERT_TRUE(got);
    ASSERT_EQ(got->bytes, message);
  });
}

TEST(SlmpExchange, TheSameSeedGivesTheSamePackets) {
  const auto run = [] {
    Random random(5, "same");
    const auto message = test::random_message(random, 60'000);
    const Segments segments = random_cut(random, message.size());
    const SenderConfig config = random_config(random);
    TestLink link(random, {20, 20, {50'000'000}, {5'000'000'000}}, message,
                  [](Time, std::span<const uint8_t> datagram) { return acknowledgement(read(datagram).value()); });
    Sender sender(config, segments);
    link.run(sender, config, segments);
    std::vector<std::pair<int64_t, uint32_t>> packets;
    for (const auto& one : link.sent) packets.emplace_back(one.time.ps, one.header.offset);
    return packets;
  };
  const auto first = run();
  EXPECT_GT(first.size(), 43) << "something was sent again";
  EXPECT_EQ(first, run());
}

}  // namespace
}  // namespace spinloom::slmp
