// Slots of packet memory by classes of sizes: they never overlap, and classes do not borrow.
#include "nic/frames/packet_allocator.hpp"

#include <gtest/gtest.h>

#include <map>

#include "base/random.hpp"
#include "nic/spin/testing/replay.hpp"

namespace spinloom::frames {
namespace {

// Rules: FPS-38, FPS-39, FPS-40.
TEST(PacketAllocator, TheBoardHas512KiB) {
  const auto made = PacketAllocator::create(PacketAllocator::board());
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->bytes(), 512u * 1024);  // 256 * 1536 + 1024 * 128
  EXPECT_EQ(made->class_of(128), 1u);
  EXPECT_EQ(made->class_of(129), 0u);
  EXPECT_EQ(made->class_of(1536), 0u);
  EXPECT_FALSE(made->class_of(1537).has_value());
}

// Rules: FPS-41.
TEST(PacketAllocator, AFullClassDoesNotBorrow) {
  auto made = PacketAllocator::create({{2, 64}, {1, 1024}});
  ASSERT_TRUE(made.ok());
  const auto first = made->take(0);
  const auto second = made->take(0);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->address, 0u);
  EXPECT_EQ(second->address, 64u);
  EXPECT_FALSE(made->take(0).has_value());
  EXPECT_EQ(made->free(1), 1u);
  made->give_back(*first);
  EXPECT_EQ(made->take(0)->address, 0u);
}

TEST(PacketAllocator, ImpossibleClassesAreRefused) {
  EXPECT_FALSE(PacketAllocator::create({}).ok());
  EXPECT_FALSE(PacketAllocator::create({{0, 64}}).ok());
  EXPECT_FALSE(PacketAllocator::create({{1, 0}}).ok());
  EXPECT_FALSE(PacketAllocator::create({{1u << 20, 1u << 20}}).ok());
}

TEST(PacketAllocator, SlotsNeverOverlap) {
  const uint64_t seed = spin::test_seed();
  Random random(seed);
  auto made = PacketAllocator::create({{5, 96}, {7, 32}, {3, 200}});
  ASSERT_TRUE(made.ok());
  const uint32_t sizes[] = {96, 32, 200};
  std::map<uint32_t, PacketAllocator::Slot> taken;  // the key is the address
  for (int step = 0; step < 5000; ++step) {
    if (random.below(2) == 0 && !taken.empty()) {
      auto which = taken.begin();
      std::advance(which, static_cast<long>(random.below(taken.size())));
      made->give_back(which->second);
      taken.erase(which);
    } else if (const auto slot = made->take(static_cast<uint32_t>(random.below(3)))) {
      const auto [at, fresh] = taken.emplace(slot->address, *slot);
      ASSERT_TRUE(fresh) << spin::replay(seed, "frame");
      const auto after = std::next(at);
      if (after != taken.end()) {
        ASSERT_LE(slot->address + sizes[slot->slot_class], after->first) << spin::replay(seed, "frame");
      }
      if (at != taken.begin()) {
        const auto& before = std::prev(at)->second;
        ASSERT_LE(before.address + sizes[before.slot_class], slot->address) << spin::replay(seed, "frame");
      }
    }
    ASSERT_EQ(made->used_slots(), taken.size()) << spin::replay(seed, "frame");
  }
}

}  // namespace
}  // namespace spinloom::frames
