// What our endpoints take for the 13 rows of Table I of Di Girolamo et al., "Exploiting Offload Enabled Network Interfaces",
// beside its formulas.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "collective/call.hpp"
#include "collective/plan.hpp"
#include "collective/table1.hpp"

namespace spinloom::collective {
namespace {

struct Count {
  uint64_t ends = 0;  // memory descriptors and match list entries
  uint64_t triggered = 0;
  uint64_t counters = 0;
};

// What we take of P = 2^L ranks, P at least 8, where it is not what the table says, and why.
struct Ours {
  uint64_t (*ends)(uint64_t ranks, uint64_t log);
  uint64_t (*triggered)(uint64_t ranks, uint64_t log);
  uint64_t (*counters)(uint64_t ranks, uint64_t log);
  const char* why;
};
using Formula64 = uint64_t (*)(uint64_t, uint64_t);
constexpr Formula64 as_the_table = nullptr;

constexpr const char* an_entry_each =
    "an entry takes one message, so that an early one of the next start overwrites nothing; the table has one for all";
constexpr const char* root_waits =
    "the root moves the blocks into the order of the tree first, and what it sends waits for that";
constexpr const char* one_end_each =
    "a descriptor for each counter that local computations count on, beside the entries; the table counts one side";

constexpr Ours ours[] = {
    {as_the_table, as_the_table, as_the_table, ""},
    {as_the_table, as_the_table, as_the_table, ""},
    {as_the_table, as_the_table, as_the_table, ""},
    {[](uint64_t p, uint64_t) { return p; }, as_the_table, as_the_table, an_entry_each},
    {[](uint64_t, uint64_t l) { return 2 * l + 1; }, [](uint64_t p, uint64_t l) { return p + l - 1; },
     [](uint64_t, uint64_t l) { return 2 * l - 1; },
     "Bruck's algorithm packs the blocks of a round, which the table does not count: copies, and counters for their "
     "order"},
    {[](uint64_t, uint64_t l) { return 2 * l + 1; }, as_the_table, [](uint64_t, uint64_t l) { return l + 1; },
     one_end_each},
    {[](uint64_t, uint64_t l) { return 3 * l - 1; }, [](uint64_t, uint64_t l) { return 2 * l - 1; },
     [](uint64_t, uint64_t l) { return 2 * l - 1; },
     "a computation is waited for by the next send and, with a receive, by the next computation: two counters for a "
     "round"},
    {as_the_table, as_the_table, as_the_table, ""},
    {as_the_table, [](uint64_t, uint64_t l) { return l; }, as_the_table, root_waits},
    {[](uint64_t p, uint64_t) { return p; }, as_the_table, as_the_table, an_entry_each},
    {[](uint64_t, uint64_t l) { return l + 1; }, as_the_table, as_the_table, an_entry_each},
    {[](uint64_t p, uint64_t) { return 2 * (p - 1); }, [](uint64_t p, uint64_t) { return p - 1; },
     [](uint64_t p, uint64_t) { return p - 1; }, "the root combines P - 1 messages, not P; and descriptors count, too"},
    {[](uint64_t, uint64_t l) { return 2 * l; }, as_the_table, [](uint64_t, uint64_t l) { return l; },
     "a descriptor for each sum, beside the entries; and the last sum at the root is waited for by nobody, but a rank "
     "below it that sends on waits for its last one"},
};

constexpr uint64_t bytes = 48;

// The most of any rank. Each sum and copy is one operation of the NIC.
Count counted(const Table1Row& row, uint32_t ranks) {
  Count most;
  std::vector<uint8_t> send(ranks * bytes);
  std::vector<uint8_t> receive(ranks * bytes);
  std::vector<uint32_t> looked_at(ranks);
  std::iota(looked_at.begin(), looked_at.end(), 0);
  // There ranks do the same, but turn their blocks by their own number.
  if (row.operation == Operation::alltoall) looked_at = {0, 1, 2, ranks / 2, ranks - 2, ranks - 1};
  for (const uint32_t rank : looked_at) {
    Call call;
    call.operation = row.operation;
    call.algorithm = row.algorithm;
    call.send = send.data();
    call.receive = receive.data();
    call.bytes = bytes;
    call.type = nic::Datatype::int32;
    call.segment_bytes = bytes;
    auto made = make(call, rank, ranks);
    EXPECT_TRUE(made.ok()) << made.error().message;
    const Plan plan = plan_of(made->graph, std::vector<uint32_t>(made->graph.operations.size(), 1), false);
    most.ends = std::max<uint64_t>(most.ends, plan.descriptors + plan.entries);
    most.triggered = std::max<uint64_t>(most.triggered, plan.triggered);
    most.counters = std::max<uint64_t>(most.counters, plan.counters());
  }
  return most;
}

TEST(Resources, AreThoseOfTableOneOrHaveAReason) {
  ASSERT_EQ(std::size(ours), table1().size());
  for (size_t number = 0; number < table1().size(); ++number) {
    const Table1Row& row = table1()[number];
    for (uint32_t ranks = 8; ranks <= 1024; ranks *= 2) {
      SCOPED_TRACE(text(name_of(row.operation), " ", row.name, ", P = ", ranks, "; ", ours[number].why));
      const Count found = counted(row, ranks);
      const auto log = static_cast<uint64_t>(std::bit_width(ranks) - 1);
      const auto wanted = [&](const Formula& paper, Formula64 own) {
        return own == as_the_table ? paper.of(ranks, bytes) : own(ranks, log);
      };
      EXPECT_EQ(found.ends, wanted(row.entries, ours[number].ends));
      EXPECT_EQ(found.triggered, wanted(row.triggered, ours[number].triggered));
      EXPECT_EQ(found.counters, wanted(row.counters, ours[number].counters));
      const bool differs = found.ends != row.entries.of(ranks, bytes) ||
                           found.triggered != row.triggered.of(ranks, bytes) ||
                           found.counters != row.counters.of(ranks, bytes);
      EXPECT_EQ(differs, ours[number].why[0] != 0) << "who differs has a reason";
    }
  }
}

}  // namespace
}  // namespace spinloom::collective
