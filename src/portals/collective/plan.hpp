// Plan - which counters a Graph needs, and what waits for which value of them.
//
// Contract: plan_of() follows Di Girolamo et al., "Exploiting Offload Enabled Network Interfaces", section II.C.3. The
//   Plan says on which counter an operation counts when it ends, and at which value of which counter it begins.
//   Operations that wait for the same operations share a counter. An operation that is in several such sets counts on
//   one counter, and Relays (triggered counts) carry its count on. Counter `done` counts the ends of all operations for
//   which nothing waits. When it, and the counters with any-of sets, have grown by their `each`, the Graph is over.
//   Counter `gate` lets cached operations go that wait for nothing; `apart` counts optional operations for which
//   nothing waits.
// Invariants: (1) in each execution a counter grows by its `each` exactly; (2) a CPU-dependent operation has a counter
//   for itself, on which spl_enable() counts, too.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <vector>

#include "portals/collective/graph.hpp"

namespace spinloom::collective {

inline constexpr uint32_t counter_none = UINT32_MAX;
inline constexpr uint32_t counter_done = 0;
inline constexpr uint32_t counter_gate = 1;
inline constexpr uint32_t counter_apart = 2;
inline constexpr uint32_t counters_first = 3;  // of those for dependencies

struct Wait {
  uint32_t counter = counter_none;
  uint64_t value = 0;
};

struct Plan {
  struct Relay {
    Wait when;
    uint32_t to = counter_none;
  };
  std::vector<uint32_t> counts_on;  // by operation
  std::vector<Wait> begins;  // by operation; receives and exposed memory: none, they begin with the schedule
  std::vector<Relay> relays;
  std::vector<uint64_t> each;  // by counter
  std::vector<bool> has_any;  // by counter: whether its set is an any-of one, of which all come in the end
  std::vector<bool> uncertain;  // by counter: whether optional operations count there
  bool is_certain = true;  // no counter is uncertain
  uint32_t descriptors = 0;
  uint32_t entries = 0;
  uint32_t triggered = 0;
  [[nodiscard]] uint32_t counters() const { return static_cast<uint32_t>(each.size()) - counters_first; }
};

// `weights`: how often an operation counts when it ends.
[[nodiscard]] Plan plan_of(const Graph& graph, const std::vector<uint32_t>& weights, bool cached);

}  // namespace spinloom::collective
