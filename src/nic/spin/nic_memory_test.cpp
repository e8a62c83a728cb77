// Memory of the NIC: first fit, neighbours, and random blocks.
#include "nic/spin/nic_memory.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "nic/spin/testing/replay.hpp"

namespace spinloom::spin {
namespace {

TEST(NicMemory, FirstFitIsAlignedAndNeighboursJoin) {
  NicMemory memory(1000);
  EXPECT_EQ(*memory.allocate(10, 64), 0u);
  EXPECT_EQ(*memory.allocate(100, 64), 64u);
  EXPECT_EQ(*memory.allocate(20, 8), 16u);  // the gap before the aligned block is used
  EXPECT_EQ(memory.used(), 130u);
  EXPECT_EQ(memory.largest_free(), 836u);
  ASSERT_TRUE(memory.free(64).ok());
  EXPECT_EQ(memory.largest_free(), 964u);  // 36 .. 1000
  ASSERT_TRUE(memory.free(0).ok());
  ASSERT_TRUE(memory.free(16).ok());
  EXPECT_EQ(memory.largest_free(), 1000u);
  EXPECT_EQ(memory.used(), 0u);
  EXPECT_EQ(memory.peak(), 130u);
}

TEST(NicMemory, ErrorsNameTheKnob) {
  NicMemory memory(100);
  const auto full = memory.allocate(101, 1);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, Code::exhausted);
  EXPECT_NE(full.error().message.find("memory.state_bytes"), std::string::npos);
  EXPECT_NE(full.error().message.find("101"), std::string::npos);
  EXPECT_EQ(memory.allocate(0, 1).error().code, Code::invalid);
  EXPECT_EQ(memory.allocate(1, 3).error().code, Code::invalid);
  EXPECT_EQ(memory.free(0).error().code, Code::invalid);
}

TEST(NicMemory, HoldsOnlyWhatLiesInsideOneBlock) {
  NicMemory memory(256);
  ASSERT_TRUE(memory.allocate(32, 1).ok());
  ASSERT_TRUE(memory.allocate(32, 1).ok());
  EXPECT_TRUE(memory.holds(0, 32));
  EXPECT_TRUE(memory.holds(40, 24));
  EXPECT_FALSE(memory.holds(16, 32));  // two blocks
  EXPECT_FALSE(memory.holds(64, 1));
  EXPECT_FALSE(memory.holds(40, UINT64_MAX));
}

TEST(NicMemory, RandomBlocksNeverOverlap) {
  const uint64_t seed = test_seed();
  Random random(seed, "nic_memory");
  NicMemory memory(4096);
  std::vector<uint8_t> owner(4096, 0);
  struct Block {
    uint64_t offset, bytes;
  };
  std::vector<Block> blocks;
  for (int step = 0; step < 20000; ++step) {
    if (blocks.empty() || random.chance(1, 2)) {
      const uint64_t bytes = 1 + random.below(200);
      const uint64_t align = uint64_t{1} << random.below(8);
      const auto offset = memory.allocate(bytes, align);
      if (!offset) continue;
      ASSERT_EQ(*offset % align, 0u) << replay(seed);
      for (uint64_t i = 0; i < bytes; ++i) {
        ASSERT_EQ(owner.at(*offset + i), 0) << "step " << step << ", " << replay(seed);
        owner[*offset + i] = 1;
      }
      blocks.push_back({*offset, bytes});
    } else {
      const uint64_t which = random.below(blocks.size());
      const Block block = blocks[which];
      blocks[which] = blocks.back();
      blocks.pop_back();
      ASSERT_TRUE(memory.free(block.offset).ok()) << replay(seed);
      for (uint64_t i = 0; i < block.bytes; ++i) owner[block.offset + i] = 0;
    }
  }
  for (const Block& block : blocks) ASSERT_TRUE(memory.free(block.offset).ok());
  EXPECT_EQ(memory.largest_free(), 4096u) << replay(seed);
}

}  // namespace
}  // namespace spinloom::spin
