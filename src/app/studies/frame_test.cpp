// The studies of frames with the shipped handlers: bytes are compared, times are sums.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "app/studies/frame_machine.hpp"
#include "app/studies/frame_packets.hpp"
#include "app/studies/frame_ping.hpp"
#include "app/studies/frame_slmp.hpp"
#include "app/studies/testing/images.hpp"
#include "memory/layout/testing/layout_ways.hpp"
#include "memory/layout/text.hpp"
#include "simulated/node/testing/frame_profile.hpp"
#include "spinloom/ddt.h"

namespace spinloom::app {
namespace {

PingConfig ping_of(PingWay way, bool udp, uint32_t bytes) {
  PingConfig config;
  config.profile = simulated::board_profile();
  config.images = test_images(SPINLOOM_HANDLERS);
  config.way = way;
  config.udp = udp;
  config.payload_bytes = bytes;
  config.pings = 4;
  config.far_stack_time = Time{10'000'000};
  config.host_answer_time = Time{20'000'000};
  config.poll_time = Time{64'000};
  config.word_time = Time{64'000};
  config.call_time = Time{1'000'000};
  return config;
}

int64_t mean(const PingResult& result) {
  int64_t sum = 0;
  for (const int64_t each : result.round_trips_ps) sum += each;
  return sum / static_cast<int64_t>(result.round_trips_ps.size());
}

TEST(FramePing, EveryWayAnswersWithTheRightBytes) {
  for (const PingWay way : {PingWay::host, PingWay::nic, PingWay::both}) {
    for (const bool udp : {true, false}) {
      for (const uint32_t bytes : {0u, 1u, 16u, 515u, 1416u}) {
        const auto result = run_ping(ping_of(way, udp, bytes));
        ASSERT_TRUE(result.ok()) << result.error().message;
        EXPECT_GT(mean(*result), 20'000'000);
      }
    }
  }
}

// T = 2 far_stack + 2 cables + match + host_answer + what crosses PCIe.
TEST(FramePing, AHostAnswersAfterItsTime) {
  const auto result = run_ping(ping_of(PingWay::host, true, 100));
  ASSERT_TRUE(result.ok());
  const int64_t crossing = mean(*result) - 40'000'000;
  EXPECT_GT(crossing, 100'000 + 3 * 225'000);
  EXPECT_LT(crossing, 1'200'000);
}

// The checksum over a longer payload takes longer; UDP is not summed.
TEST(FramePing, OnlyIcmpGrowsWithItsPayload) {
  const auto of = [](bool udp, uint32_t bytes) { return mean(*run_ping(ping_of(PingWay::nic, udp, bytes))); };
  const int64_t cable_and_copies = 5'000'000;
  EXPECT_LT(of(true, 1416) - of(true, 16), cable_and_copies);
  EXPECT_GT(of(false, 1416) - of(false, 16), 2 * cable_and_copies);
}

TEST(FramePing, TheSameRunTwiceIsTheSame) {
  const auto once = run_ping(ping_of(PingWay::both, false, 300));
  auto other = ping_of(PingWay::both, false, 300);
  other.slice_cycles = 17;
  const auto again = run_ping(other);
  ASSERT_TRUE(once.ok() && again.ok());
  EXPECT_EQ(once->round_trips_ps, again->round_trips_ps);
  EXPECT_EQ(once->handler_cycles, again->handler_cycles);
}

TEST(FramePing, ALongPingIsRefused) {
  const auto result = run_ping(ping_of(PingWay::nic, true, 1480));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Code::invalid);
}

SlmpConfig slmp_of(const std::string& type, int64_t count, uint32_t messages, const std::string& image) {
  SlmpConfig config{{}, layout::parse(type).value()};
  config.profile = simulated::board_profile();
  config.images = test_images(SPINLOOM_HANDLERS);
  config.count = count;
  config.messages = messages;
  config.image = image;
  config.send_time = Time{3'000'000};
  config.far_stack_time = Time{10'000'000};
  config.sleep_time = Time{150'000'000};
  config.poll_time = Time{64'000};
  config.call_time = Time{1'000'000};
  return config;
}

constexpr const char* simple = "contig(27648, float)";
constexpr const char* complex =
    "hvector(2,1,18432B, hvector(2,1,12288B, hvector(2,1,6144B, vector(32,6,8, contig(18, float)))))";

// The window is one packet, so bytes that are written twice have the packed order's last value.
TEST(FrameSlmp, BothWaysUnpackEveryType) {
  for (const char* type :
       {simple, complex, "hindexed([0B x 3, 96B x 1, 200B x 7], int32_t)", "resized(0B, 6B, int16_t)"}) {
    for (const char* image : {"frame_ddt_segment", "frame_ddt_seek"}) {
      const auto result = run_slmp(slmp_of(type, 3, 2, image));
      ASSERT_TRUE(result.ok()) << type << " by " << image << ": " << result.error().message;
      EXPECT_TRUE(result->compared);
      EXPECT_GT(result->time_ps, 0);
      EXPECT_EQ(result->acks, result->packets);
    }
  }
}

// Every listed layout lands as the plain type map says: run_slmp() compares all of the host's memory. The handlers walk
// narrow programs in messages of at least a byte; of longer ones than a MiB the run would take minutes.
TEST(FrameSlmp, TheListedLayoutsLand) {
  constexpr int64_t bytes_max = 1 << 20;
  for (const char* image : {"frame_ddt_segment", "frame_ddt_seek"}) {
    for (const layout::test::Row& row : layout::test::listed_layouts()) {
      const int64_t bytes = row.count * row.type.size();
      if (bytes == 0 || bytes > bytes_max) continue;
      SlmpConfig config = slmp_of("byte", row.count, 1, image);
      config.type = row.type;
      const auto result = run_slmp(config);
      ASSERT_TRUE(result.ok()) << row.name << " by " << image << ": " << result.error().message;
      EXPECT_TRUE(result->compared) << row.name << " by " << image;
      EXPECT_EQ(result->bytes, static_cast<uint64_t>(bytes)) << row.name;
    }
  }
}

// A packet takes a whole number of sleeps, and its sending: T >= packets * (send + sleep).
TEST(FrameSlmp, AWindowOfOneIsBoundByTheSleeps) {
  const auto result = run_slmp(slmp_of(simple, 1, 1, "frame_ddt_segment"));
  ASSERT_TRUE(result.ok());
  const int64_t packets = (110592 + 1459) / 1460;
  EXPECT_EQ(result->packets, static_cast<uint64_t>(packets));
  EXPECT_EQ(result->sleeps, static_cast<uint64_t>(packets));
  EXPECT_GE(result->time_ps, (packets - 1) * 153'000'000);
  EXPECT_LT(result->time_ps, (packets + 1) * 153'000'000);
}

// Seeking needs no order, so any window and any HPU will do.
TEST(FrameSlmp, SeekingTakesALargeWindow) {
  auto config = slmp_of("vector(2000, 3, 5, int32_t)", 4, 2, "frame_ddt_seek");
  const auto one = run_slmp(config);
  config.window = 32;
  const auto many = run_slmp(config);
  ASSERT_TRUE(one.ok() && many.ok());
  EXPECT_LT(many->time_ps * 3, one->time_ps);
}

TEST(FrameSlmp, LostPacketsHaveNoTime) {
  auto config = slmp_of(simple, 8, 1, "frame_ddt_seek");
  config.send_time = Time{500'000};
  config.window = 600;
  const auto result = run_slmp(config);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_GT(result->lost, 0u);
  EXPECT_FALSE(result->compared);
  EXPECT_EQ(result->time_ps, 0);
}

TEST(FrameSlmp, AHostThatComputesStillEnds) {
  auto config = slmp_of(simple, 1, 4, "frame_ddt_segment");
  config.compute_time = Time{1'000'000'000};
  const auto result = run_slmp(config);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->compared);
  EXPECT_EQ(result->compute_ps, static_cast<int64_t>(result->polls) * 1'000'000'000);
  EXPECT_EQ(result->time_ps, result->compute_ps + result->poll_ps);
}

TEST(FrameSlmp, TheSameRunTwiceIsTheSame) {
  auto config = slmp_of(complex, 1, 3, "frame_ddt_segment");
  const auto once = run_slmp(config);
  config.slice_cycles = 23;
  const auto again = run_slmp(config);
  ASSERT_TRUE(once.ok() && again.ok());
  EXPECT_EQ(once->time_ps, again->time_ps);
  EXPECT_EQ(once->handler_cycles, again->handler_cycles);
}

struct Silent final : simulated::FrameHost {
  void on_far_frame(const simulated::FrameBytes&) override { ++far; }
  void on_stack_frame(const simulated::FrameBytes&) override {}
  void on_host_write(const uint8_t*, uint64_t) override { ++writes; }
  int far = 0, writes = 0;
};

// Payload before, over and behind the end of a message of 64 B is dropped, and that of a message which the context does
// not have; the right one lands, with Ethernet's padding or without.
TEST(FrameSlmp, PayloadOutsideOfTheMessagesIsDropped) {
  const auto message = strategies::make_message(layout::parse("contig(64, byte)").value(), 1);
  ASSERT_TRUE(message.ok());
  const auto blob = message->blob.bytes();
  for (const char* image : {"frame_ddt_segment", "frame_ddt_seek"}) {
    const SlmpConfig setup = slmp_of(simple, 1, 1, image);
    spl_ddt_frames constants{sizeof constants, 512, 16 * SPL_HOST_PAGE_BYTES, 64, 1, 0};
    FrameMachineOptions options;
    options.image = image;
    options.rules = "slmp";
    options.constants.resize(sizeof constants + blob.size());
    std::memcpy(options.constants.data(), &constants, sizeof constants);
    std::memcpy(options.constants.data() + sizeof constants, blob.data(), blob.size());
    options.state_bytes = sizeof(struct spl_host_data) + 512;
    options.buffer_bytes = 64;
    Silent host;
    const auto machine = FrameMachine::create(setup, host, options);
    ASSERT_TRUE(machine.ok()) << machine.error().message;
    const std::vector<uint8_t> payload = random_bytes(1, "test", 65);
    const auto send = [&](uint32_t offset, size_t bytes, uint32_t number = 0, size_t padding = 0) {
      std::vector<uint8_t> frame = slmp_frame(number, offset, SPL_SLMP_SYN, std::span(payload).first(bytes));
      frame.resize(frame.size() + padding, 0xee);
      (*machine)->node().send_from_far(frame);
      while ((*machine)->events().step()) {
      }
    };
    for (const uint32_t offset : {1u, 64u, 0x7fffffffu, 0xffffffffu}) send(offset, 64);
    send(0, 65);
    for (const uint32_t number : {1u, 0x01000000u, 0xffffffffu}) send(0, 64, number);
    EXPECT_EQ(host.writes + host.far, 0);
    std::vector<uint8_t> cut = slmp_frame(0, 0, SPL_SLMP_SYN, {});
    cut.resize(50);
    (*machine)->node().send_from_far(cut);
    send(0, 64);
    send(0, 4, 0, 4);
    EXPECT_EQ(host.writes, 2);
    EXPECT_EQ(host.far, 2);
    EXPECT_TRUE((*machine)->check().ok());
    EXPECT_EQ((*machine)->node().nic().count(frames::Count::handler_dropped), 9u);
    const uint8_t* const buffer = (*machine)->memory().data() + (*machine)->buffers_offset();
    EXPECT_TRUE(std::equal(payload.begin(), payload.begin() + 64, buffer));
  }
}

TEST(FrameSlmp, TooManyMessagesAreRefused) {
  EXPECT_FALSE(run_slmp(slmp_of(simple, 1, 17, "frame_ddt_seek")).ok());
  EXPECT_FALSE(run_slmp(slmp_of(simple, 1, 0, "frame_ddt_seek")).ok());
}

}  // namespace
}  // namespace spinloom::app
