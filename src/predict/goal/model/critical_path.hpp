// CriticalPath - the chain of dependencies that ends with the last operation of a run.
//
// Contract: critical_path() goes back from the last operation that ends: from an operation to its last dependency, from
//   a busy CPU to the work that kept it busy, from a receive to its send. The steps follow each other from time 0 to
//   the end without a gap, so that their times add up to the run's.
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

[[nodiscard]] std::vector<Step> critical_path(const schedule::Schedule& schedule, const Model& model,
                                              const Record& record);

}  // namespace spinloom::goal
