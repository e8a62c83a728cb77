// ScheduleOf - a Script as a schedule at given costs.
//
// Contract: schedule_of() gives each rank its program. Host CPUs are CPU 0; CPU 1 does what a NIC does with the bytes
//   of a layout, one message after the other; messages are on CPU 2, which is free: a send leaves when the CPU has done
//   its work for it, whatever else waits for that CPU. CPUs from 3 on stand for what messages wait for side by side.
//   All CPU time of message ends is in the schedule, so that a model's o and O must be 0. With `uses_one_cpu` costs all
//   is on CPU 0, and what message ends cost is left to the model: so other tools can run it, which do not order across
//   CPUs. check() of the schedule finds nothing. A message that has a layout has it in the schedule, at each end its
//   own; what costs say of it is in the computations, and then a model's price of layouts must be none. A call's
//   operations wait for those of the call before: for their ends, or for their starts if it was non-blocking.
//   Collective operations that NICs execute need no host CPU between their creation and their end, but for messages
//   that had come before and for layouts that are the CPU's. All their receives are posted when they are created.
// Invariants: (1) Bill's parts of a rank add up to the time of its computations.
// Threads: pure. Time: modelled, in ps; computations in the unit of the costs, rounded up.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "predict/program/costs.hpp"
#include "predict/program/script.hpp"
#include "predict/program/waits.hpp"
#include "predict/schedule/schedule.hpp"

namespace spinloom::predict {

// The computation time and the messages of a rank, by purpose.
struct Bill {
  uint64_t compute_ps = 0;  // the program's own, and calls that keep their time
  uint64_t messages_ps = 0;  // CPU time of the ends of messages, but for their layouts
  uint64_t layouts_ps = 0;  // CPU time to pack, unpack and copy a rank's own blocks
  uint64_t combine_ps = 0;  // CPU time to combine operands of reductions
  uint64_t nic_ps = 0;  // time of the NIC and delays of messages, in which no CPU works
  uint64_t sent_messages = 0;
  uint64_t sent_bytes = 0;
  uint64_t received_bytes = 0;
};

// True for a receive that is posted after its message, or its request, has come; by rank and leg.
using LateReceives = std::vector<std::vector<bool>>;

inline constexpr uint32_t no_operation = UINT32_MAX;

struct PricedSchedule {
  schedule::Schedule schedule;
  std::vector<Bill> bills;  // one for each rank
  std::vector<std::vector<uint32_t>> receives;  // the operation that meets the message or request of each rank's legs
  Waits waits;
};

// `late`: the receives that a replay has found late. It has no effect without costs of late receives.
[[nodiscard]] Result<PricedSchedule> schedule_of(const Script& script, const Costs& costs,
                                                 const LateReceives& late = {});

}  // namespace spinloom::predict
