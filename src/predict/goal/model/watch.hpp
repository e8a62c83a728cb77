// Watch - a caller's look at a schedule while it runs.
//
// Contract: a run calls it each `events_between_looks` events with the number of operations that have begun. Where NICs
//   are simulated, which takes longer, it does so each `nic_events_between_looks`. False ends the run, with an error
//   that says so.
// Threads: called by the thread that runs. Time: none; how long it is between two calls the engine does not know.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "predict/schedule/watch.hpp"

namespace spinloom::goal {

using schedule::Watch;

inline constexpr uint32_t events_between_looks = 1U << 16;
inline constexpr uint32_t nic_events_between_looks = 1U << 13;

[[nodiscard]] inline Error ended_by_watch(uint64_t begun) {
  return fail(Code::stalled, "the run was ended from outside when ", begun, " operations had begun");
}

}  // namespace spinloom::goal
