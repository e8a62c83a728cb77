// The slab: memory in proportion to its use, and slots that stay where they are.
#include "nic/spin/slab.hpp"

#include <gtest/gtest.h>

namespace spinloom::spin {
namespace {

struct Counted {
  Counted() { ++alive; }
  explicit Counted(int given) : value(given) { ++alive; }
  ~Counted() { --alive; }
  int value = 0;
  static inline int alive = 0;
};

TEST(Slab, TakesMemoryInProportionToItsUse) {
  Slab<Counted> slab;
  EXPECT_EQ(Counted::alive, 0);
  for (uint32_t taken = 1; taken <= 5000; ++taken) {
    (void)slab.take();
    ASSERT_LE(static_cast<uint32_t>(Counted::alive), std::max(8u, 2 * taken)) << "of " << taken;
  }
}

TEST(Slab, EveryIndexIsASlotOfItsOwnThatStaysWhereItIs) {
  Slab<Counted> slab;
  std::vector<Counted*> where;
  for (int i = 0; i < 3000; ++i) {
    const uint32_t index = slab.take(i);
    ASSERT_EQ(index, static_cast<uint32_t>(i));
    where.push_back(&slab[index]);
  }
  for (int i = 0; i < 3000; ++i) {
    const auto index = static_cast<uint32_t>(i);
    ASSERT_EQ(&slab[index], where[index]);
    ASSERT_EQ(slab[index].value, i);
    ASSERT_TRUE(slab.is_taken(index));
  }
  EXPECT_FALSE(slab.is_taken(3000));
  slab.give_back(1234);
  EXPECT_FALSE(slab.is_taken(1234));
  EXPECT_EQ(slab.take(7), 1234u) << "the slot given back last is taken next";
  uint32_t seen = 0;
  slab.for_each([&seen](uint32_t index, const Counted&) { ASSERT_EQ(index, seen++); });
  EXPECT_EQ(seen, 3000u);
}

}  // namespace
}  // namespace spinloom::spin
