// Patterns - schedules of collective operations, by name.
//
// Contract: make_pattern() gives the schedule of a pattern for a number of ranks; rank 0 is the root where there is
//   one. `bytes`: of each message; the rings of `ring_allreduce` send the part of a rank, rounded up. Nothing is
//   computed, but `linear_barrier` has a computation of 0 between the last message in and the first one out. An unknown
//   name and a number of ranks that the pattern does not have are errors.
// Invariants: (1) ranks with the same graph share a Program.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "schedule/schedule.hpp"

namespace spinloom::goal {

[[nodiscard]] Result<schedule::Schedule> make_pattern(std::string_view name, uint32_t ranks, uint64_t bytes);
[[nodiscard]] std::vector<std::string_view> pattern_names();

}  // namespace spinloom::goal
