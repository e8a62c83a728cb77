// Check - finds what is wrong with a schedule before it runs.
//
// Contract: check() gives the first trouble of the whole schedule as a sentence: a cycle (which operations wait for
//   which); a peer that is no rank; sends and receives that do not meet (by ranks, tags and numbers; an any-source or
//   any-tag receive takes what is left); more arrivals awaited than there are; a layout of other bytes than its
//   transfer. count() tells what the schedule holds. Neither keeps anything for an operation of a rank whose edges all
//   go forward and whose messages meet by number.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>

#include "predict/schedule/schedule.hpp"
#include "predict/schedule/watch.hpp"

namespace spinloom::schedule {

struct Count {
  uint64_t sends = 0;
  uint64_t receives = 0;
  uint64_t computations = 0;
  uint64_t puts = 0;
  uint64_t gets = 0;
  uint64_t atomics = 0;  // all atomics, those that fetch, too
  uint64_t arrivals = 0;  // operations that wait for a count
  uint64_t edges = 0;
  uint64_t sent_bytes = 0;  // the bytes of sends
  uint64_t one_sided_bytes = 0;
  uint64_t layout_ends = 0;  // ends of transfers with a layout
  uint32_t cpus = 0;  // the number of different CPUs that operations name
  uint32_t nics = 0;
  uint32_t cpu_largest = 0;
  uint32_t nic_largest = 0;
};

[[nodiscard]] Status check(const Schedule& schedule, const Watch& watch = {});
// The counts are of no use if `watch` has ended the call.
[[nodiscard]] Count count(const Schedule& schedule, const Watch& watch = {});

}  // namespace spinloom::schedule
