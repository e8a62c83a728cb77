// Tests of the entries of the catalogue of algorithms, and of Table I.
#include "portals/collective/catalogue.hpp"

#include <gtest/gtest.h>

#include <set>

#include "portals/collective/table1.hpp"

namespace spinloom::collective {
namespace {

TEST(Catalogue, HasAlgorithmsOfEachOperationByName) {
  for (uint32_t number = 0; number < operation_count; ++number) {
    const auto operation = static_cast<Operation>(number);
    EXPECT_EQ(*operation_named(name_of(operation)), operation);
    ASSERT_FALSE(algorithms_of(operation).empty()) << name_of(operation);
    std::set<std::string_view> names;
    for (const Algorithm& one : algorithms_of(operation)) {
      EXPECT_EQ(one.operation, operation);
      EXPECT_TRUE(names.insert(one.name).second) << name_of(operation) << " has two algorithms " << one.name;
      EXPECT_EQ(*find(operation, one.name), &one);
    }
  }
}

TEST(Catalogue, NamesWhatThereIs) {
  EXPECT_EQ(find(Operation::gather, "ring").error().message,
            "gather has no algorithm 'ring'; it has: binomial, linear");
  EXPECT_TRUE(operation_named("gathr").error().message.starts_with(
      "there is no collective operation 'gathr'; there are: barrier, bcast, gather, gatherv, "));
}

TEST(Catalogue, WhoSaysNoSegmentsReadsNone) {
  for (uint32_t number = 0; number < operation_count; ++number) {
    for (const Algorithm& one : algorithms_of(static_cast<Operation>(number))) {
      const auto rounds_with = [&](uint64_t segment_bytes) {
        Collective call{.rank = 1, .size = 6, .segment_bytes = segment_bytes};
        call.sends = {algorithms::packed(1000)};
        call.receives = {algorithms::packed(1000, {.area = Area::receive})};
        call.sources = call.destinations = {0, 2};
        Rounds rounds;
        one.make(call, rounds);
        return rounds.take();
      };
      EXPECT_EQ(one.is_segmented, rounds_with(100) != rounds_with(UINT64_MAX))
          << name_of(one.operation) << ' ' << one.name;
    }
  }
}

// Two rows of each kind by hand. P = 9: log2 P is 4, rounded up.
TEST(Table1, IsThePapers) {
  EXPECT_EQ(table1().size(), 13U);
  const auto row_of = [](Operation operation, std::string_view algorithm) {
    for (const Table1Row& row : table1()) {
      if (row.operation == operation && row.algorithm == algorithm) return row;
    }
    return Table1Row{};
  };
  const auto numbers = [](const Table1Row& row, uint64_t ranks, uint64_t bytes) {
    std::vector<uint64_t> all;
    for (const Formula& one : {row.time, row.entries, row.triggered, row.counters, row.memory}) {
      all.push_back(one.value(ranks, bytes));
    }
    return all;
  };
  using Numbers = std::vector<uint64_t>;
  EXPECT_EQ(numbers(row_of(Operation::bcast, "binomial"), 9, 100), (Numbers{4, 2, 3, 1, 100}));
  EXPECT_EQ(numbers(row_of(Operation::alltoall, "bruck"), 8, 100), (Numbers{3, 2, 2, 1, 800}));
  EXPECT_EQ(numbers(row_of(Operation::allreduce, "tree"), 16, 100), (Numbers{4, 4, 8, 4, 100}));
  EXPECT_EQ(numbers(row_of(Operation::scatter, "linear"), 9, 100), (Numbers{9, 1, 0, 0, 900}));
  EXPECT_EQ(numbers(row_of(Operation::gather, "binomial"), 9, 100), (Numbers{4, 2, 1, 1, 900}));
  EXPECT_EQ(numbers(row_of(Operation::reduce, "linear"), 9, 100), (Numbers{9, 9, 9, 9, 100}));
  EXPECT_EQ(numbers(row_of(Operation::reduce, "binomial"), 2, 100), (Numbers{1, 1, 1, 0, 100}));
  for (const Table1Row& row : table1()) {
    EXPECT_TRUE(find(row.operation, row.algorithm).ok()) << row.algorithm;
    for (const uint64_t number : numbers(row, 1, 8)) EXPECT_LE(number, 8U) << "log(1) - 1 is none: " << row.name;
  }
}

}  // namespace
}  // namespace spinloom::collective
