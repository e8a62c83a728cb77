// Plan - the counters that a Graph needs, and the values of them for which its operations wait.
//
// Contract: plan_of() follows Di Girolamo et al., "Exploiting Offload Enabled Network Interfaces", section II.C.3. The
//   Plan says on which counter an operation counts when it ends, and at which value of which counter it begins.
//   Operations that wait for the same operations share a counter. An operation that is in several such sets counts on
//   one counter, and Relays (triggered counts) carry its count on. Counter `counter_done` counts the ends of the
//   operations for which nothing waits, but for optional ones. When it, and the counters with any-of sets (has_any),
//   have grown by their `growth`, the Graph is over. Counter `counter_gate` lets cached operations go that wait for
//   nothing; `counter_apart` counts optional operations for which nothing waits.
// Invariants: (1) in each execution a counter grows by its `growth` exactly, unless it `is_uncertain`; (2) a
//   CPU-dependent operation has a counter for itself, on which spl_enable() counts, too.
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
inline constexpr uint32_t counters_first = 3;  // the counters for dependencies begin here

struct Wait {
  uint32_t counter = counter_none;
  uint64_t value = 0;
};

struct Plan {
  struct Relay {
    Wait when;
    uint32_t to = counter_none;
  };
  std::vector<uint32_t> counts_on;  // the counter that counts each operation's end
  std::vector<Wait> begins;  // the wait with which each operation begins; none for receives and exposed memory
  std::vector<Relay> relays;
  std::vector<uint64_t> growth;  // each counter's growth in an execution
  // One for each counter: true if its set is an any-of one, all operations of which end in the end.
  std::vector<bool> has_any;
  std::vector<bool> is_uncertain;  // one for each counter: true if optional operations count there
  bool is_certain = true;  // no counter is uncertain
  uint32_t descriptors = 0;
  uint32_t entries = 0;
  uint32_t triggered = 0;
  [[nodiscard]] uint32_t counters() const { return static_cast<uint32_t>(growth.size()) - counters_first; }
};

// `weights`: how often an operation counts when it ends.
[[nodiscard]] Plan plan_of(const Graph& graph, const std::vector<uint32_t>& weights, bool cached);

}  // namespace spinloom::collective
