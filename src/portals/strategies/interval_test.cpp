// The interval of checkpoints against the formulas of the SC'19 paper, with its limits.
#include "portals/strategies/interval.hpp"

#include <gtest/gtest.h>

namespace spinloom::strategies {
namespace {

IntervalInput four_mebibytes() {
  IntervalInput input;
  input.packets = 2048;
  input.payload_bytes = 2048;
  input.hpus = 16;
  input.packet_time = 76288_ps;
  input.handler_time = 1_us;
  input.checkpoint_bytes = 100;
  input.memory_bytes = 4 << 20;
  input.packet_buffer_bytes = 4 << 20;
  return input;
}

// T_pkt (1 + j (P - 1)) <= epsilon * ceil(n / P) * T_PH
//   allowed = 0.2 * 128 * 1000 ns = 25.6 us; 25600 / 76.288 = 335 whole packets; (335 - 1) / 15 = 22.
TEST(CheckpointInterval, TakesTheLargestThatMeetsEpsilon) {
  const auto interval = checkpoint_interval(four_mebibytes());
  ASSERT_TRUE(interval);
  EXPECT_EQ(interval->packets, 22u);
  EXPECT_EQ(interval->checkpoints, 94u);  // ceil(2048 / 22)
  EXPECT_EQ(interval->allowed.ps, 25'600'000);
  EXPECT_EQ(interval->dependency.ps, 76288 * (1 + 22 * 15));
  EXPECT_FALSE(interval->exceeds_epsilon);
  EXPECT_FALSE(interval->memory_decided);
}

TEST(CheckpointInterval, TakesOnePacketAndSaysSoWhenNoneMeetsEpsilon) {
  IntervalInput input = four_mebibytes();
  input.packets = 16;  // one round: allowed = 0.2 * 1 us, less than 16 packet times
  const auto interval = checkpoint_interval(input);
  ASSERT_TRUE(interval);
  EXPECT_EQ(interval->packets, 1u);
  EXPECT_TRUE(interval->exceeds_epsilon);
}

TEST(CheckpointInterval, MemoryWinsOverEpsilon) {
  IntervalInput input = four_mebibytes();
  input.memory_bytes = 1000;  // ten checkpoints: ceil(2048 / 10) = 205 packets each
  const auto interval = checkpoint_interval(input);
  ASSERT_TRUE(interval);
  EXPECT_EQ(interval->packets, 205u);
  EXPECT_EQ(interval->checkpoints, 10u);
  EXPECT_TRUE(interval->memory_decided);
  EXPECT_TRUE(interval->exceeds_epsilon);
}

TEST(CheckpointInterval, RefusesMemoryForLessThanOneCheckpoint) {
  IntervalInput input = four_mebibytes();
  input.memory_bytes = 99;
  const auto interval = checkpoint_interval(input);
  ASSERT_FALSE(interval);
  EXPECT_EQ(interval.error().code, Code::exhausted);
  EXPECT_NE(interval.error().message.find("memory.state_bytes"), std::string::npos);
}

TEST(CheckpointInterval, PacketBufferBoundsItWhereHandlersLag) {
  IntervalInput input = four_mebibytes();
  input.handler_time = Time{1'000'000'000};  // 1 ms: 13107 packets arrive meanwhile
  input.packet_buffer_bytes = 64 * 2048;
  const auto interval = checkpoint_interval(input);
  ASSERT_TRUE(interval);
  EXPECT_EQ(interval->packets, 64u);
}

TEST(CheckpointInterval, MemoryMayAskForMoreThanThePacketBufferAndSaysSo) {
  IntervalInput input = four_mebibytes();
  input.handler_time = Time{1'000'000'000};
  input.packet_buffer_bytes = 64 * 2048;
  input.memory_bytes = 1000;
  const auto interval = checkpoint_interval(input);
  ASSERT_TRUE(interval);
  EXPECT_EQ(interval->packets, 205u);
  EXPECT_TRUE(interval->exceeds_packet_buffer);
}

// P = min(P, n): one packet depends on nobody.
TEST(CheckpointInterval, OnePacketExceedsNothing) {
  IntervalInput input = four_mebibytes();
  input.packets = 1;
  const auto interval = checkpoint_interval(input);
  ASSERT_TRUE(interval);
  EXPECT_EQ(interval->packets, 1u);
  EXPECT_FALSE(interval->exceeds_epsilon);
}

TEST(CheckpointInterval, OneHpuHasNoDependency) {
  IntervalInput input = four_mebibytes();
  input.hpus = 1;
  const auto interval = checkpoint_interval(input);
  ASSERT_TRUE(interval);
  EXPECT_EQ(interval->packets, 2048u);
  EXPECT_FALSE(interval->exceeds_epsilon);
}

}  // namespace
}  // namespace spinloom::strategies
