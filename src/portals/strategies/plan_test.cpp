// The objects that each strategy puts on the NIC.
#include "portals/strategies/plan.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "memory/layout/text.hpp"
#include "spinloom/ddt.h"
#include "spinloom/segment.h"

namespace spinloom::strategies {
namespace {

Message message_of(const char* text_form, int64_t count = 1) {
  return make_message(layout::parse(text_form).value(), count).value();
}

NicFacts facts_of(uint32_t hpus) {
  NicFacts facts;
  facts.hpus = hpus;
  facts.payload_bytes = 2048;
  facts.state_bytes = 1 << 20;
  facts.packet_buffer_bytes = 1 << 20;
  facts.packet_time = 76288_ps;
  return facts;
}

const HandlerCost cost{100_ns, 20_ns};

template <class T>
T read_at(const std::vector<uint8_t>& bytes, uint64_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// SC'19 datatypes paper, section 3.2.4: as many virtual HPUs as HPUs, each with a segment, one packet in a row.
TEST(PlanHpuLocal, OneSegmentForEachHpu) {
  const Message message = message_of("vector(4096, 16, 32, double)");
  for (const uint32_t hpus : {1u, 3u, 16u}) {
    const auto made = plan(Strategy::hpu_local, message, facts_of(hpus), {});
    ASSERT_TRUE(made);
    EXPECT_EQ(made->image, "hpu_local");
    const auto local = read_at<spl_ddt_local>(made->constants, 0);
    EXPECT_EQ(local.segment_bytes, spl_segment_bytes(message.blob.data()));
    EXPECT_EQ(made->state.size(), uint64_t{hpus} * local.segment_bytes);
    ASSERT_TRUE(made->blocked_round_robin);
    EXPECT_EQ(made->blocked_round_robin->packets_in_row, 1u);
    EXPECT_EQ(made->blocked_round_robin->vhpus, hpus);
    EXPECT_FALSE(made->interval);
  }
}

TEST(PlanRoCp, TakesTheIntervalOfRwCpAndHalfOfItsCopies) {
  const Message message = message_of("vector(65536, 2, 4, double)");
  const auto read_only = plan(Strategy::ro_cp, message, facts_of(8), cost);
  const auto progressed = plan(Strategy::rw_cp, message, facts_of(8), cost);
  ASSERT_TRUE(read_only);
  ASSERT_TRUE(progressed);
  EXPECT_GT(read_only->interval->packets, 1u);
  EXPECT_EQ(read_only->interval->packets, progressed->interval->packets);
  EXPECT_EQ(read_only->constants, progressed->constants);
  EXPECT_TRUE(read_only->state.empty());
  EXPECT_FALSE(read_only->blocked_round_robin);
  EXPECT_EQ(progressed->state.size(), progressed->interval->checkpoints * progressed->checkpoint_bytes);
}

TEST(PlanCheckpoints, EachStandsAtTheStartOfItsInterval) {
  const Message message = message_of("hindexed([0B x 5, 40B x 11, 9B x 3], byte)", 5000);
  const auto made = plan(Strategy::ro_cp, message, facts_of(4), cost);
  ASSERT_TRUE(made);
  const auto header = read_at<spl_ddt_checkpoints>(made->constants, 0);
  for (uint64_t index = 0; index < made->interval->checkpoints; ++index) {
    const auto position = read_at<uint32_t>(made->constants, header.masters_offset + index * header.checkpoint_bytes);
    EXPECT_EQ(position, index * made->interval->packets * 2048);
  }
}

// A struct of vectors becomes a list of blocks while the list is short, and is walked member by member otherwise.
TEST(PlanSpecialised, WalksMembersWhereAListWouldBeLong) {
  const auto of = [](int64_t rows) {
    const std::string vector = text("vector(", rows, ", 3, 32, float)");
    return make_message(
               layout::parse(text("struct([(0B, ", vector, "), (1000000B, 2, int), (2000000B, ", vector, ")])"))
                   .value(),
               1)
        .value();
  };
  const auto few = plan(Strategy::specialised, of(100), facts_of(4), {});
  ASSERT_TRUE(few);
  EXPECT_EQ(few->image, "indexed");
  const auto many = plan(Strategy::specialised, of(1000), facts_of(4), {});
  ASSERT_TRUE(many);
  EXPECT_EQ(many->image, "members");
  EXPECT_LT(many->nic_memory_bytes(), few->nic_memory_bytes());
  EXPECT_EQ(many->prepared_blocks, 0u);
  const Message nested = message_of("struct([(0B, vector(9, 1, 4, vector(100, 1, 3, int))), (90000B, byte)])");
  EXPECT_EQ(plan(Strategy::specialised, nested, facts_of(4), {})->image, "indexed");
}

TEST(Plan, StrategiesWithoutHandlersHaveNone) {
  const Message message = message_of("vector(4, 1, 2, int)");
  for (const Strategy strategy :
       {Strategy::host_mpitypes, Strategy::host_best, Strategy::host_warm, Strategy::rdma_direct, Strategy::iovec}) {
    EXPECT_EQ(plan(strategy, message, facts_of(4), {}).error().code, Code::invalid);
  }
}

TEST(Plan, SaysWhichMemoryIsTooSmall) {
  const Message message = message_of("vector(65536, 2, 4, double)");
  NicFacts facts = facts_of(64);
  facts.state_bytes = 1024;
  const auto made = plan(Strategy::hpu_local, message, facts, {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::exhausted);
  EXPECT_NE(made.error().message.find("memory.state_bytes"), std::string::npos) << made.error().message;
}

TEST(Strategy, NamesGoBothWays) {
  for (const char* name : {"host-mpitypes", "host-best", "host-warm", "rdma-direct", "iovec", "specialised",
                           "hpu-local", "ro-cp", "rw-cp", "seek"}) {
    EXPECT_STREQ(name_of(strategy_named(name).value()), name);
  }
  EXPECT_NE(strategy_named("sek").error().message.find("hpu-local, ro-cp"), std::string::npos);
}

}  // namespace
}  // namespace spinloom::strategies
