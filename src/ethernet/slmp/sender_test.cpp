// The sender of SLMP: its window, time-outs, reports, and how it gives up.
#include "ethernet/slmp/sender.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "ethernet/slmp/testing/link.hpp"

namespace spinloom::slmp {
namespace {

constexpr Time ms(int64_t count) { return {count * 1'000'000'000}; }

// 5 packets of 100 B; the message is 450 B long.
Segments five(Mode mode = Mode::segment) { return {7, 450, 100, mode}; }

std::vector<uint32_t> offsets_at(Sender& sender, Time now) {
  std::vector<uint32_t> out;
  while (const auto packet = sender.next(now)) out.push_back(packet->header.offset);
  return out;
}

void acknowledge(Sender& sender, Time now, std::initializer_list<uint32_t> offsets) {
  for (const uint32_t offset : offsets) sender.on_acknowledgement(now, {ack, 7, offset});
}

using Offsets = std::vector<uint32_t>;

// The first packet's ACK, then a window of 2, then EOM alone.
// Rules: SLMP-25, SLMP-26, SLMP-40.
TEST(SlmpSender, OpensFillsItsWindowAndCloses) {
  Sender sender({.window = 2}, five());
  EXPECT_EQ(offsets_at(sender, ms(0)), Offsets({0}));
  acknowledge(sender, ms(1), {0});
  EXPECT_EQ(offsets_at(sender, ms(1)), Offsets({100, 200}));
  acknowledge(sender, ms(2), {200});
  EXPECT_EQ(offsets_at(sender, ms(2)), Offsets({300}));
  acknowledge(sender, ms(3), {300});
  EXPECT_EQ(offsets_at(sender, ms(3)), Offsets({})) << "100 is still under way";
  acknowledge(sender, ms(3), {100});
  const auto last = sender.next(ms(3));
  ASSERT_TRUE(last);
  EXPECT_EQ(last->header, (Header{eom | syn, 7, 400}));
  EXPECT_EQ(last->length, 50);
  EXPECT_FALSE(sender.done());
  acknowledge(sender, ms(4), {400});
  EXPECT_TRUE(sender.done());
  EXPECT_EQ(sender.timer(), Time::never());
}

// Without retransmission the last packet leaves as FPsPIN's does: as soon as the window has room.
// Rules: SLMP-33.
TEST(SlmpSender, WithoutRetransmissionTheEndDoesNotWait) {
  Sender sender({.window = 8, .retransmit = false}, five());
  EXPECT_EQ(offsets_at(sender, ms(0)), Offsets({0}));
  acknowledge(sender, ms(1), {0});
  EXPECT_EQ(offsets_at(sender, ms(1)), Offsets({100, 200, 300, 400}));
  EXPECT_TRUE(sender.all_sent());
  EXPECT_FALSE(sender.done());
}

// Rules: SLMP-25.
TEST(SlmpSender, ModesAskForDifferentAcknowledgements) {
  Sender none({}, five(Mode::none));
  EXPECT_EQ(offsets_at(none, ms(0)), Offsets({0, 100, 200, 300, 400}));
  EXPECT_TRUE(none.done());
  Sender message({.window = 1}, five(Mode::message));
  EXPECT_EQ(offsets_at(message, ms(0)), Offsets({0}));
  acknowledge(message, ms(1), {0});
  EXPECT_EQ(offsets_at(message, ms(1)), Offsets({100, 200, 300, 400})) << "a window counts packets with SYN";
  EXPECT_FALSE(message.done());
  acknowledge(message, ms(2), {400});
  EXPECT_TRUE(message.done());
}

// t_i = i * gap
// Rules: SLMP-28.
TEST(SlmpSender, PacketsLeaveAGapApart) {
  Sender sender({.gap = ms(3)}, five(Mode::none));
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(sender.timer(), ms(3 * i));
    EXPECT_EQ(offsets_at(sender, ms(3 * i)), Offsets({static_cast<uint32_t>(100 * i)}));
    EXPECT_EQ(offsets_at(sender, ms(3 * i + 2)), Offsets({}));
  }
}

// Timeouts before a round trip is known: 200, 400, 800 ms; sent at 0, 200, 600; given up at 1400.
// Rules: SLMP-35, SLMP-38, SLMP-39.
TEST(SlmpSender, AsksAgainWithDoubledPatienceAndGivesUp) {
  Sender sender({.tries_max = 3}, five());
  EXPECT_EQ(offsets_at(sender, ms(0)), Offsets({0}));
  for (const auto& [due, then] : {std::pair{200, 600}, std::pair{600, 1400}}) {
    EXPECT_EQ(sender.timer(), ms(due));
    EXPECT_EQ(offsets_at(sender, ms(due - 1)), Offsets({}));
    EXPECT_EQ(offsets_at(sender, ms(due)), Offsets({0}));
    EXPECT_EQ(sender.timer(), ms(then));
  }
  EXPECT_EQ(offsets_at(sender, ms(1400)), Offsets({}));
  ASSERT_FALSE(sender.status().ok());
  EXPECT_EQ(sender.status().error().message,
            "message 7: the packet at offset 0 was sent 3 times and not acknowledged within 1400 ms (0 packets were); "
            "is a receiver of SLMP there?");
  EXPECT_EQ(sender.timer(), Time::never());
}

// Round trips of 1 ms give timeouts of 10, 20, 40 ms, 70 ms in all. After the last acknowledgement at 2 ms the message
// has failed at the first deadline behind 72 ms, and not after three tries of each of 20 packets, one after the other.
// Rules: SLMP-39.
TEST(SlmpSender, AReceiverThatFallsSilentIsGivenUp) {
  Sender sender({.window = 64, .tries_max = 3}, {7, 100000, 100, Mode::segment});
  EXPECT_EQ(offsets_at(sender, ms(0)).size(), 1);
  acknowledge(sender, ms(1), {0});
  EXPECT_EQ(offsets_at(sender, ms(1)).size(), 11);
  for (uint32_t i = 1; i <= 10; ++i) acknowledge(sender, ms(2), {100 * i});
  Time now = ms(2);
  while (sender.status().ok()) {
    std::ignore = offsets_at(sender, now);
    if (!sender.status().ok()) break;
    ASSERT_LT(now, ms(1000));
    now = std::max(sender.timer(), now + ms(1));
  }
  EXPECT_GE(now, ms(72));
  EXPECT_LE(now, ms(72 + 40));
}

// FPsPIN's deadlines: 1 s for the first packet and for a window, 2 s for the acknowledgements at the end.
// Rules: SLMP-31, SLMP-32.
TEST(SlmpSender, WithoutRetransmissionDeadlinesAreFpspins) {
  Sender opening({.retransmit = false}, five());
  EXPECT_EQ(offsets_at(opening, ms(0)), Offsets({0}));
  EXPECT_EQ(opening.timer(), ms(1000));
  EXPECT_EQ(offsets_at(opening, ms(1000)), Offsets({}));
  EXPECT_FALSE(opening.status().ok());

  Sender draining({.retransmit = false}, five());
  EXPECT_EQ(offsets_at(draining, ms(0)), Offsets({0}));
  acknowledge(draining, ms(1), {0});
  EXPECT_EQ(offsets_at(draining, ms(1)).size(), 4);
  acknowledge(draining, ms(500), {200});
  EXPECT_EQ(draining.timer(), ms(2001));
  EXPECT_EQ(offsets_at(draining, ms(2001)), Offsets({}));
  EXPECT_FALSE(draining.status().ok());
  EXPECT_EQ(draining.counts().retransmitted, 0);
}

// Sent at 0 and at 200 ms: an acknowledgement at 201 ms may be of either, so the timeout stays 200 ms. One of a packet
// that was sent once, 20 ms later, makes it 3 * 20 ms.
// Rules: SLMP-37.
TEST(SlmpSender, OnlyPacketsThatWereSentOnceMeasureRoundTrips) {
  Sender sender({.window = 1}, five());
  EXPECT_EQ(offsets_at(sender, ms(0)), Offsets({0}));
  EXPECT_EQ(offsets_at(sender, ms(200)), Offsets({0}));
  acknowledge(sender, ms(201), {0});
  EXPECT_EQ(offsets_at(sender, ms(201)), Offsets({100}));
  EXPECT_EQ(sender.timer(), ms(201 + 200));
  acknowledge(sender, ms(221), {100});
  EXPECT_EQ(offsets_at(sender, ms(221)), Offsets({200}));
  EXPECT_EQ(sender.timer(), ms(221 + 60));
}

// 10 packets, and one more for each acknowledgement: 11, then 21 after a window of 10. All of it is lost: 10.
// Rules: SLMP-41, SLMP-42.
TEST(SlmpSender, ItsWindowAdapts) {
  Sender sender({.window = 64}, {7, 10000, 100, Mode::segment});
  EXPECT_EQ(offsets_at(sender, ms(0)).size(), 1);
  acknowledge(sender, ms(1), {0});
  EXPECT_EQ(offsets_at(sender, ms(1)).size(), 11);
  for (uint32_t i = 1; i <= 10; ++i) acknowledge(sender, ms(2), {100 * i});
  EXPECT_EQ(sender.window(), 21);
  EXPECT_EQ(offsets_at(sender, ms(2)).size(), 20);
  EXPECT_EQ(offsets_at(sender, ms(1000)).size(), 10) << "what is lost leaves again, as the window allows";
  EXPECT_EQ(sender.window(), 10);
  Sender fixed({.window = 64, .fixed_window = true}, {7, 10000, 100, Mode::segment});
  EXPECT_EQ(offsets_at(fixed, ms(0)).size(), 1);
  acknowledge(fixed, ms(1), {0});
  EXPECT_EQ(offsets_at(fixed, ms(1)).size(), 64);
}

// Rules: SLMP-20.
TEST(SlmpSender, OnlyItsOwnAcknowledgementsCount) {
  Sender sender({}, five());
  EXPECT_EQ(offsets_at(sender, ms(0)), Offsets({0}));
  sender.on_acknowledgement(ms(1), {ack, 8, 0});    // another message
  sender.on_acknowledgement(ms(1), {ack, 7, 50});   // no segment begins there
  sender.on_acknowledgement(ms(1), {ack, 7, 100});  // this segment is not sent yet
  sender.on_acknowledgement(ms(1), {syn, 7, 0});    // no acknowledgement
  sender.on_acknowledgement(ms(1), {ack, 7, 4000});
  EXPECT_EQ(sender.counts().foreign, 5);
  EXPECT_EQ(offsets_at(sender, ms(1)), Offsets({}));
  acknowledge(sender, ms(1), {0, 0});
  EXPECT_EQ(sender.counts().duplicates, 1);
}

// If a receiver answers with a report, every later packet asks for one; the reported room is the window.
// Rules: SLMP-54, SLMP-55.
TEST(SlmpSender, AReportIsTheWindow) {
  Sender sender({.window = 64, .reports = true}, {7, 10000, 100, Mode::segment});
  EXPECT_EQ(sender.next(ms(0))->header, (Header{syn | report, 7, 0}));
  sender.on_acknowledgement(ms(1), {ack | report, 7, 0, 2});
  EXPECT_TRUE(sender.receiver_reports());
  EXPECT_EQ(sender.next(ms(1))->header, (Header{syn | report, 7, 100}));
  EXPECT_EQ(offsets_at(sender, ms(1)), Offsets({200}));
  sender.on_acknowledgement(ms(2), {ack | report, 7, 100, 0});
  EXPECT_EQ(offsets_at(sender, ms(2)), Offsets({})) << "200 is under way";
  sender.on_acknowledgement(ms(3), {ack | report, 7, 200, 0});
  EXPECT_EQ(offsets_at(sender, ms(3)), Offsets({300})) << "nothing is under way: one packet leaves";
}

// Rules: SLMP-53.
TEST(SlmpSender, WhoDoesNotReportIsAskedNoMore) {
  Sender ignored({.reports = true}, five());
  EXPECT_EQ(ignored.next(ms(0))->header, (Header{syn | report, 7, 0}));
  acknowledge(ignored, ms(1), {0});
  EXPECT_EQ(ignored.next(ms(1))->header, (Header{syn, 7, 100}));
  EXPECT_EQ(offsets_at(ignored, ms(1)), Offsets({200, 300}));
  Sender refused({.reports = true}, five());
  EXPECT_EQ(refused.next(ms(0))->header, (Header{syn | report, 7, 0}));
  EXPECT_EQ(refused.next(ms(200))->header, (Header{syn | report, 7, 0}));
  EXPECT_EQ(refused.next(ms(600))->header, (Header{syn, 7, 0}));
  Sender plain({}, five());
  EXPECT_EQ(offsets_at(plain, ms(0)), Offsets({0}));
  plain.on_acknowledgement(ms(1), {ack | report, 7, 0, 9});
  EXPECT_EQ(plain.counts().foreign, 1) << "it did not ask";
}

// Rules: SLMP-56.
TEST(SlmpSender, RefusesWhatCannotWork) {
  EXPECT_TRUE(check(SenderConfig{}).ok());
  EXPECT_FALSE(check(SenderConfig{.window = 0}).ok());
  EXPECT_FALSE(check(SenderConfig{.window = SenderConfig::window_max + 1}).ok());
  EXPECT_FALSE(check(SenderConfig{.gap = {-1}}).ok());
  EXPECT_FALSE(check(SenderConfig{.tries_max = 0}).ok());
  EXPECT_FALSE(check(SenderConfig{.reports = true, .tries_max = 2}).ok());
  EXPECT_FALSE(check(SenderConfig{.retransmit = false, .reports = true}).ok());
  EXPECT_FALSE(check(SenderConfig{.senders = 0}).ok());
}

}  // namespace
}  // namespace spinloom::slmp
