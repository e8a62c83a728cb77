// Needs - the resources of its NIC and the memory that a rank's part of a collective operation takes, counted as in
// Table I of Di Girolamo, Jolivet, Underwood and Hoefler, "Exploiting Offload Enabled Network Interfaces" (FFLIB).
//
// Contract: needs_of() counts in the Plan of a Graph that is not cached; a combination longer than `atomic_bytes` is
//   several triggered operations. callers_bytes() is the size of the data that the caller sends or of those that it
//   receives, whichever is larger: the table counts one of them, S of an all-reduce, P S of the root of a scatter.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <span>

#include "portals/collective/graph.hpp"

namespace spinloom::collective {

struct Needs {
  uint64_t entries = 0;  // memory descriptors and match list entries
  uint64_t triggered = 0;
  uint64_t counters = 0;  // the counters of dependencies
  uint64_t own_bytes = 0;  // bytes of memory beside the caller's
  // Takes the larger one of each pair of numbers.
  void take_maxima(const Needs& other);
};

[[nodiscard]] Needs needs_of(const Graph& graph, uint64_t atomic_bytes);
[[nodiscard]] uint64_t callers_bytes(std::span<const Round> rounds);

}  // namespace spinloom::collective
