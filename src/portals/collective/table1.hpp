// Table 1 - the resources of an endpoint for a collective operation, by Table I of Di Girolamo, Jolivet, Underwood and
// Hoefler, "Exploiting Offload Enabled Network Interfaces" (FFLIB).
//
// Contract: table1() has the 13 rows in the paper's order: the most that any rank needs of P ranks and S bytes.
//   Logarithms are base 2, rounded up; a result below 0 (of a single rank) counts as 0. `algorithm` is the name of the
//   same algorithm in the catalogue. These are the paper's formulas, not the counts of our own endpoint.
// Threads: constants. Time: only its order, of ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "portals/collective/catalogue.hpp"

namespace spinloom::collective {

struct Formula {
  std::string_view text;  // the paper's notation
  uint64_t (*value)(uint64_t ranks, uint64_t bytes);
};

struct Table1Row {
  Operation operation;
  std::string_view name;  // the paper's, of the algorithm
  std::string_view algorithm;
  Formula time;  // the order of the time
  Formula entries;  // memory descriptors and match list entries
  Formula triggered;
  Formula counters;
  Formula memory;  // bytes
};

[[nodiscard]] std::span<const Table1Row> table1();

}  // namespace spinloom::collective
