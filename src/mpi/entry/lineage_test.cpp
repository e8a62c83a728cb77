// Keys of communicators: ranks that make the same calls find the same ones, and no two communicators share one.
#include "mpi/entry/lineage.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <utility>
#include <vector>

namespace spinloom::mpi {
namespace {

using Ranks = std::vector<int>;
const Ranks all{0, 1, 2, 3};

Key named(Lineage& parent, const Ranks& members) { return parent.next_child().of_members(members); }

TEST(Lineage, RanksThatMakeTheSameCallsFindTheSameKeys) {
  std::array<Lineage, 2> ranks{Lineage::of_world(), Lineage::of_world()};
  for (int call = 0; call < 3; ++call) {
    const Key key = ranks[0].next_child();
    EXPECT_EQ(ranks[1].next_child(), key);
    std::array<Lineage, 2> children{Lineage(key), Lineage(key)};
    EXPECT_EQ(children[0].next_child(), children[1].next_child());
    EXPECT_EQ(children[0].next_window(), children[1].next_window());
  }
}

// Rank 0 is in {0, 1} and in {0, 2}; ranks 1 and 2 in one of them, so they cannot count the other's calls.
TEST(Lineage, CallsOfAGroupAreCountedByThatGroupAlone) {
  std::array<Lineage, 3> ranks{Lineage::of_world(), Lineage::of_world(), Lineage::of_world()};
  constexpr int tag = 7;
  const Ranks with_1{0, 1};
  const Ranks with_2{0, 2};
  const Key first = ranks[0].next_child(with_1, tag);
  const Key other = ranks[0].next_child(with_2, tag);
  const Key second = ranks[0].next_child(with_1, tag);
  EXPECT_EQ(ranks[2].next_child(with_2, tag), other);
  EXPECT_EQ(ranks[1].next_child(with_1, tag), first);
  EXPECT_EQ(ranks[1].next_child(with_1, tag), second);
  EXPECT_NE(ranks[1].next_child(with_1, tag + 1), ranks[0].next_child(with_1, tag));
  // Calls of a group do not change the count of the calls that all ranks make.
  EXPECT_EQ(ranks[0].next_child(), ranks[1].next_child());
}

// Every communicator of two generations: copies, parts by colour, groups and windows.
TEST(Lineage, TellsAllCommunicatorsApart) {
  std::set<std::pair<uint64_t, uint64_t>> seen;
  size_t made = 0;
  const auto add = [&](Key key) {
    EXPECT_FALSE(key.is_none());
    seen.insert({key.low, key.high});
    ++made;
  };
  const std::vector<Ranks> parts{{0, 1, 2, 3}, {3, 2, 1, 0}, {0, 1}, {1, 0}, {2, 3}, {0}, {1}, {2}, {3}};
  Lineage world = Lineage::of_world();
  add(world.key().of_members(all));
  for (int call = 0; call < 50; ++call) {
    const Key lineage = world.next_child();
    for (const Ranks& members : parts) add(lineage.of_members(members));
    Lineage child(lineage);
    for (int again = 0; again < 20; ++again) {
      add(named(child, all));
      add(child.next_window());
      for (const int tag : {0, 1, 2}) add(child.next_child(all, tag));
    }
  }
  EXPECT_EQ(seen.size(), made);
}

}  // namespace
}  // namespace spinloom::mpi
