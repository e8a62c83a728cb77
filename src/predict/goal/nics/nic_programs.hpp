// NicPrograms - the work of NICs on the layouts of transfers, by measured prices.
//
// Contract: with_nic_programs() gives the schedule in which the layout at a transfer's own end is work of its rank's
//   NIC: a message leaves, or has been received, `nic_ps` later, and the NIC works for `nic_busy_ps`, one layout after
//   the other. No CPU is needed; where the NIC does not take a layout, the CPU of the operation works for `cpu_ps`
//   instead. Prices are by Shape; computations are in ps from then on. An operation ends when its layout has been
//   moved. What waits for its begin waits for the begin of its first part, which may be the work on its layout.
//       T(s <= S) = gather + c + L + n G + c + scatter
//   So an executed handler is paid for by every message at any number of ranks, and run once for each layout and size.
// Invariants: (1) messages and the order that the graph demands stay; (2) of a rank up to `delays_max` messages wait
//   for more than their NIC's work at one time.
// Threads: pure. Time: modelled.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "predict/schedule/schedule.hpp"

namespace spinloom::goal {

inline constexpr uint32_t delays_max = 8;

struct ProgramPrice {
  uint64_t cpu_ps = 0;  // work of the CPU, where the NIC does not take the layout
  uint64_t nic_ps = 0;  // time that the message waits for the NIC
  uint64_t nic_busy_ps = 0;  // time after which the NIC can take the next layout
};

struct WithNicPrograms {
  schedule::Schedule schedule;
  std::vector<uint64_t> nic_ps;  // one for each rank: the time of the computations that its NIC does, not a CPU
};

// Returns an error if a computation does not fit or no CPU numbers are left.
[[nodiscard]] Result<WithNicPrograms> with_nic_programs(const schedule::Schedule& original,
                                                        const std::vector<ProgramPrice>& prices, uint64_t unit_ps);

}  // namespace spinloom::goal
