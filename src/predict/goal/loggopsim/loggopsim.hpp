// LogGopSim - the light engine's dialect with exactly the rules of LogGOPSim of 2023, in its integers.
//
// Contract: run_loggopsim() gives each rank's time, or an error. For a schedule that stalls, the error says which
//   operations never began, and which sends and receives are left. Operations that GOAL does not have, and peers that
//   are no ranks, are errors, too. Rules: LogGOPS (Hoefler, Schneider, Lumsdaine, HPDC'10) as the public
//   sources of 2023 apply them, with a stable order of operations that become free together.
// Invariants: (1) the order of events is that of (time, number), where an element that waits for a CPU or a NIC keeps
//   its number; it waits in the queue of that resource, not in the queue of events.
// Threads: pure; one run is one thread's. Time: modelled, in the unit of the parameters (nanoseconds by custom).
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "predict/goal/model/matching.hpp"
#include "predict/goal/model/watch.hpp"
#include "predict/schedule/schedule.hpp"

namespace spinloom::goal {

// The parameters of LogGOPS. Times are per message, those of `G` and `O` per byte. Messages of more than `S` bytes wait
// for their receive.
struct LogGopSimParameters {
  uint64_t L = 2500;
  uint64_t o = 1500;
  uint64_t g = 1000;
  uint64_t G = 6;
  uint64_t O = 0;
  uint64_t S = 65535;
  TagsApart tags_apart = {};  // ours: a receive of any tag does not take these, which it does there
};

struct LogGopSimOutcome {
  std::vector<uint64_t> host_times;  // one for each rank
  uint64_t makespan = 0;
  uint64_t events = 0;
};

[[nodiscard]] Result<LogGopSimOutcome> run_loggopsim(const schedule::Schedule& schedule,
                                                     const LogGopSimParameters& parameters, const Watch& watch = {});

}  // namespace spinloom::goal
