// Table1Ours - the resources that our endpoints take for the rows of Table I, with reasons for differences.
//
// Contract: table1_ours() has a row for each of table1(), in its order. A Formula without text is the table's.
//   For `from_ranks` ranks and more (powers of two) the counts equal the formulas; fewer ranks take at most as much.
//   table1_count() makes the operations of all ranks and counts those of the rank that takes most; a sum or a copy is
//   one operation of the NIC.
// Invariants: (1) a row has a `reason` if and only if it differs from the table at some power of two from 2 on.
// Threads: pure. Time: none. Work: that of making the operations of all ranks.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.hpp"
#include "portals/collective/table1.hpp"

namespace spinloom::collective {

struct Table1Ours {
  Formula entries = {};
  Formula triggered = {};
  Formula counters = {};
  Formula memory = {};
  uint64_t from_ranks = 2;
  std::string_view reason = {};
};

struct Table1Count {
  uint64_t entries = 0;
  uint64_t triggered = 0;
  uint64_t counters = 0;
  uint64_t memory_bytes = 0;  // including the caller's
};

[[nodiscard]] std::span<const Table1Ours> table1_ours();
[[nodiscard]] Result<Table1Count> table1_count(const Table1Row& row, uint32_t ranks, uint64_t bytes);

}  // namespace spinloom::collective
