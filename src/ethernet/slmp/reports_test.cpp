// Reports of room: a sender and receivers of few slots, or none that reports, over links that lose and reorder packets.
#include <gtest/gtest.h>

#include "base/testing/seeds.hpp"
#include "ethernet/slmp/receiver.hpp"
#include "ethernet/slmp/testing/link.hpp"

namespace spinloom::slmp {
namespace {

using test::Faults;
using test::TestLink;

constexpr Time us(int64_t count) { return {count * 1'000'000}; }

// A receiver like a NIC's handlers: a packet has a slot from its arrival until it is answered, and packets are answered
// one after the other.
class Slots {
 public:
  Slots(uint32_t slots, Time each) : slots_(slots), each_(each) {}

  void take(TestLink& link, std::span<const uint8_t> datagram) {
    if (taken_ == slots_) {
      ++dropped;
      return;
    }
    ++taken_;
    ready_ = std::max(ready_, link.now) + each_;
    link.at(ready_, [this, &link, bytes = std::vector<uint8_t>(datagram.begin(), datagram.end())] {
      auto outcome = receiver_.on_datagram(link.now, 1, bytes);
      if (outcome->message) got = std::move(outcome->message);
      Header answer = *outcome->acknowledgement;
      if (has_report(answer)) answer.room = slots_ - taken_;
      link.reply(answer);
      --taken_;
    });
  }

  uint64_t dropped = 0;
  std::optional<Receiver::Message> got;

 private:
  uint32_t slots_;
  Time each_;
  Time ready_{0};
  uint32_t taken_ = 0;
  Receiver receiver_{ReceiverConfig{}};
};

struct Exchange {
  uint64_t dropped = 0;
  uint64_t retransmitted = 0;
  bool reported = false;
  Time time;
};

Exchange exchange(Random& random, const Faults& faults, const SenderConfig& config, const Segments& segments,
                  Slots slots) {
  const auto message = test::random_message(random, segments.message_bytes);
  TestLink* way = nullptr;
  TestLink link(random, faults, message, [&](Time, std::span<const uint8_t> datagram) {
    slots.take(*way, datagram);
    return std::optional<Header>();
  });
  way = &link;
  Sender sender(config, segments);
  link.run(sender, config, segments);
  EXPECT_TRUE(sender.status().ok()) << sender.status().error().message;
  EXPECT_TRUE(slots.got && slots.got->bytes == message);
  return {slots.dropped, sender.counts().retransmitted, sender.receiver_reports(), link.now};
}

// 4,000 packets at most 1 us apart, to 64 slots with 4 us for each: 16 ms in all. docs/slmp.md has these numbers:
// packets that found no slot, and the goodput in percent of what the receiver can do.
TEST(SlmpReports, AFastSenderFillsNoReceiver) {
  const Segments segments{7, 4000 * 100, 100, Mode::segment};
  struct Row {
    uint32_t window;
    bool fixed, reports;
    uint64_t dropped;
    int64_t percent;
  };
  for (const Row& row : {Row{1024, true, false, 2692, 10},
                         {1024, false, false, 1509, 21},
                         {1024, true, true, 0, 99},
                         {1024, false, true, 0, 99},
                         {32, true, false, 0, 99}}) {
    SCOPED_TRACE(text("fixed ", row.fixed, ", reports ", row.reports));
    Random random(1, "SlmpReports");
    SenderConfig config{.window = row.window, .gap = us(1), .fixed_window = row.fixed, .reports = row.reports};
    config.tries_max = 1000;
    const Exchange got = exchange(random, {}, config, segments, {64, us(4)});
    EXPECT_EQ(got.dropped, row.dropped);
    EXPECT_EQ(100 * 4 * 4000 * us(1).ps / got.time.ps, row.percent);
    EXPECT_EQ(got.retransmitted > 0, row.dropped > 0);
  }
}

// Lost packets and those of one way that overtake each other do not make a sender send too much. One that has lost both
// packets that ask, or their answers, goes on without reports.
TEST(SlmpReports, RandomExchangesFillNoReceiver) {
  for_seeds(1000, [](Random& random) {
    const Segments segments{static_cast<uint32_t>(random.next()), random.below(60'000), 300, Mode::segment};
    SenderConfig config{.window = static_cast<uint32_t>(1 + random.below(200)), .gap = {random.between(0, 3'000'000)}};
    config.fixed_window = random.chance(1, 2);
    config.reports = true;
    config.tries_max = 1000;
    Faults faults{random.chance(1, 2) ? random.below(20) : 0, 0, us(random.between(1, 50))};
    (random.chance(1, 2) ? faults.delay_spread : faults.delay_spread_back) = us(random.between(0, 2000));
    const Slots slots(static_cast<uint32_t>(1 + random.below(40)), {random.between(0, 100'000'000)});
    const Exchange got = exchange(random, faults, config, segments, slots);
    ASSERT_TRUE(got.dropped == 0 || !got.reported);
    ASSERT_TRUE(got.reported || faults.lost_percent > 0);
  });
}

// Packets also come twice, and overtake each other in both directions. The receiver may then drop some, but the message
// still comes whole.
// Rules: SLMP-43.
TEST(SlmpReports, NothingStopsAMessage) {
  for_seeds(500, [](Random& random) {
    const Segments segments{static_cast<uint32_t>(random.next()), random.below(30'000), 300, Mode::segment};
    SenderConfig config{.window = static_cast<uint32_t>(1 + random.below(200)), .fixed_window = random.chance(1, 2)};
    config.reports = true;
    config.tries_max = 1000;
    const Faults faults{random.below(30), random.below(30), us(10), us(random.between(0, 20'000))};
    exchange(random, faults, config, segments, {static_cast<uint32_t>(1 + random.below(10)), us(50)});
  });
}

// Receivers of plain SLMP get plain packets, but for the first; `refuses`: they do not answer a flag that they do not
// know.
// Rules: SLMP-53.
TEST(SlmpReports, APlainReceiverGetsItsMessage) {
  for_seeds(200, [](Random& random) {
    const bool refuses = random.chance(1, 2);
    const auto message = test::random_message(random, random.below(30'000));
    const Segments segments{7, message.size(), 300, Mode::segment};
    SenderConfig config{.window = 30, .reports = true};
    config.tries_max = 1000;
    TestLink link(random, {random.below(20), random.below(20), us(10), us(100)}, message,
                  [&](Time, std::span<const uint8_t> datagram) -> std::optional<Header> {
                    const Header header = read(datagram).value();
                    if (refuses && header.has(report)) return std::nullopt;
                    return Header{ack, header.message_id, header.offset};
                  });
    Sender sender(config, segments);
    link.run(sender, config, segments);
    ASSERT_TRUE(sender.done());
    uint64_t asked = 0;
    for (const auto& one : link.sent) {
      asked += one.header.has(report) ? 1 : 0;
      ASSERT_TRUE(!one.header.has(report) || one.header.offset == 0);
    }
    ASSERT_LE(asked, SenderConfig::asks_max);
    ASSERT_TRUE(!refuses || asked == SenderConfig::asks_max);
  });
}

}  // namespace
}  // namespace spinloom::slmp
