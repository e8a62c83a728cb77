// The resources that our endpoints take for the rows of Table I, against its formulas and our own.
#include <gtest/gtest.h>

#include "portals/collective/choice.hpp"
#include "portals/collective/needs.hpp"
#include "portals/collective/table1_ours.hpp"

namespace spinloom::collective {
namespace {

constexpr uint64_t bytes = 48;

// P = 8: a rank of a binomial broadcast has an entry and a descriptor, log P - 1 triggered sends and one counter for
// them.
TEST(Needs, OfABroadcast) {
  const CallShape shape{.ranks = 8, .bytes = bytes};
  const auto rounds = rounds_of(**find(Operation::bcast, "binomial"), shape, 0, 4);
  ASSERT_TRUE(rounds.ok());
  const Needs needs = needs_of(unread_graph_of(*rounds), bytes);
  EXPECT_EQ(needs.entries, 2U);
  EXPECT_EQ(needs.triggered, 2U);
  EXPECT_EQ(needs.counters, 1U);
  EXPECT_EQ(needs.own_bytes, 0U);
  EXPECT_EQ(callers_bytes(*rounds), bytes);
}

// Half of P blocks come to place P/2 of a scatter: own memory P/2 S, the caller's S. The root has P S of the caller's.
TEST(Needs, OfMemory) {
  const CallShape shape{.ranks = 8, .bytes = bytes};
  const Algorithm& scatter = **find(Operation::scatter, "binomial");
  const auto half = rounds_of(scatter, shape, 0, 4);
  EXPECT_EQ(needs_of(unread_graph_of(*half), bytes).own_bytes, 4 * bytes);
  EXPECT_EQ(callers_bytes(*half), bytes);
  const auto root = rounds_of(scatter, shape, 0, 0);
  EXPECT_EQ(needs_of(unread_graph_of(*root), bytes).own_bytes, 0U);
  EXPECT_EQ(callers_bytes(*root), 8 * bytes);
}

// A sum of 48 B by atomics of 20 B is three of them.
TEST(Needs, CountsAtomics) {
  const CallShape shape{.ranks = 2, .bytes = bytes};
  const auto rounds = rounds_of(**find(Operation::reduce, "linear"), shape, 0, 0);
  EXPECT_EQ(needs_of(unread_graph_of(*rounds), 48).triggered, 1U);
  EXPECT_EQ(needs_of(unread_graph_of(*rounds), 20).triggered, 3U);
}

TEST(Table1, OursAreCountedAndHaveReasons) {
  ASSERT_EQ(table1_ours().size(), table1().size());
  for (size_t number = 0; number < table1().size(); ++number) {
    const Table1Row& row = table1()[number];
    const Table1Ours& ours = table1_ours()[number];
    bool differs = false;
    for (uint32_t ranks = 2; ranks <= (row.operation == Operation::alltoall ? 64U : 1024U); ranks *= 2) {
      SCOPED_TRACE(text(name_of(row.operation), " ", row.name, ", P = ", ranks, "; ", ours.reason));
      const auto found = table1_count(row, ranks, bytes);
      ASSERT_TRUE(found.ok()) << found.error().message;
      const auto compare = [&](uint64_t count, const Formula& paper, const Formula& own) {
        const uint64_t expected = (own.value == nullptr ? paper : own).value(ranks, bytes);
        EXPECT_LE(count, expected);
        EXPECT_TRUE(count == expected || ranks < ours.from_ranks) << count << " is not " << expected;
        differs |= count != paper.value(ranks, bytes);
      };
      compare(found->entries, row.entries, ours.entries);
      compare(found->triggered, row.triggered, ours.triggered);
      compare(found->counters, row.counters, ours.counters);
      compare(found->memory_bytes, row.memory, ours.memory);
    }
    EXPECT_EQ(differs, !ours.reason.empty())
        << "who differs has a reason: " << name_of(row.operation) << " " << row.name;
  }
}

}  // namespace
}  // namespace spinloom::collective
