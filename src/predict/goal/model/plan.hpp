// Plan - what an engine knows about a Program before it runs, once for all ranks that have it.
//
// Contract: roots begin at once. `dependency_counts` are the numbers of dependencies of the operations that wait for
//   two or more others, or for the first of several: operation i has counter `counter_of[i]`, or none. `counter_of` is
//   empty if no operation has one.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "predict/schedule/schedule.hpp"
#include "predict/schedule/watch.hpp"

namespace spinloom::goal {

struct Plan {
  std::vector<uint32_t> roots;  // the order is that of their numbers
  std::vector<uint32_t> dependency_counts;
  std::vector<uint32_t> counter_of;  // one for each operation; UINT32_MAX: it has none
  bool is_windowed = false;  // nothing else is known before the run; a rank has a window (counter_windows.hpp)
};

[[nodiscard]] Plan plan_of(const schedule::Program& program);
// Calls `visit` for each operation that waits for nothing, in the order of their numbers. Needs two bits of memory at
// most for each operation of a pass.
void for_each_root(const schedule::Program& program, const std::function<void(uint32_t)>& visit);

// Returns an error for a peer that is no rank, or if `watch` has ended the run.
[[nodiscard]] Status check_peers(const schedule::Schedule& schedule, const schedule::Watch& watch = {});

// Returns an error for the first operation that GOAL does not have (one-sided operations and any-of edges); `why` is
// the reason.
[[nodiscard]] Status check_plain(const schedule::Schedule& schedule, std::string_view why);

}  // namespace spinloom::goal
