// CriticalPath - the chains of dependencies that end with the last operation of a run, and with a CPU's wait.
//
// Contract: critical_path() goes back from the last operation that ends: from an operation to its last dependency, from
//   a busy CPU to the work that kept it busy, from a receive to its send. The steps follow each other from time 0 to
//   the end without a gap, so that their times add up to the run's. waits() goes back in the same way from each
//   operation before which its CPU had nothing to do, to the time when that began.
// Invariants: (1) the waits of a CPU do not overlap; (2) a wait has one step at least, and its cause is the sort of
//   steps that took longest of at most wait_steps_max.
// Threads: pure. Time: modelled, in picoseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "predict/goal/model/model.hpp"
#include "predict/goal/model/record.hpp"
#include "predict/schedule/schedule.hpp"

namespace spinloom::goal {

enum class StepKind : uint8_t {
  compute,
  send,  // a CPU's work for a message
  receive,
  latency,  // L
  bytes,  // n G
  queue,  // the wait in NICs and in the network, and its hops
};

struct Step {
  uint64_t begin_ps;
  uint64_t end_ps;
  uint32_t rank;  // a message has its sender here
  uint32_t operation;
  StepKind kind;
};

struct Wait {
  uint64_t begin_ps;
  uint64_t end_ps;
  uint32_t rank;
  uint32_t operation;  // the one that ends the wait
  uint32_t waited_for;  // the rank whose step came last; `rank` itself if no other rank had a step
  StepKind cause;
  uint32_t cause_rank;
  uint64_t cause_ps;  // the time of all steps of this kind and rank
};

inline constexpr size_t wait_steps_max = 256;

[[nodiscard]] std::vector<Step> critical_path(const schedule::Schedule& schedule, const Model& model,
                                              const Record& record);

// The order is by rank, CPU and time.
[[nodiscard]] std::vector<Wait> waits(const schedule::Schedule& schedule, const Model& model, const Record& record);

}  // namespace spinloom::goal
