// Table 1 - what an endpoint needs for a collective operation, as Table I of Di Girolamo, Jolivet, Underwood and
// Hoefler, "Exploiting Offload Enabled Network Interfaces" (FFLIB), says.
//
// Contract: table1() has the 13 rows in the paper's order: the most that any rank needs of P ranks and S bytes.
//   Logarithms are base 2, rounded up; what would be below 0 (of a single rank) is 0. `algorithm` is the name of the
//   same algorithm in the catalogue. These are the paper's formulas, not what our own endpoint takes.
// Threads: constants. Time: only its order, of ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "portals/collective/catalogue.hpp"

namespace spinloom::collective {

struct Formula {
  std::string_view text;  // as the paper writes it
  uint64_t (*of)(uint64_t ranks, uint64_t bytes);
};

struct Table1Row {
  Operation operation;
  std::string_view name;  // the paper's, of the algorithm
  std::string_view algorithm;
  Formula time;  // of which the time is the order
  Formula entries;  // memory descriptors and match list entries
  Formula triggered;
  Formula counters;
  Formula memory;  // bytes
};

[[nodiscard]] std::span<const Table1Row> table1();

}  // namespace spinloom::collective
