// Interval - computes how many packets share one checkpoint under RW-CP and RO-CP.
//
// Contract: checkpoint_interval() applies the rule of the SC'19 datatypes paper, section 3.2.4, to whole
//   packets. There are P HPUs, and n packets of k payload bytes; T_pkt is a packet's arrival time, T_PH a
//   payload handler's time. The interval is the largest number j of packets that meets two conditions:
//     T_pkt + j (P - 1) T_pkt <= epsilon * ceil(n / P) * T_PH      (scheduling dependency);
//     j k <= packet buffer, where handlers lag behind arrival.
//   Then comes memory: ceil(n / j) checkpoints must fit, which may ask for a larger j. Memory wins. If not even one
//   checkpoint fits, the result is Code::exhausted.
//   If not even j = 1 meets epsilon, j = 1 is taken. The result reports the limits that are exceeded.
//   The paper assumes P < n. With fewer packets than HPUs, no more than n HPUs ever work: P is min(P, n) here.
// Threads: pure. Time: durations in ps.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "base/units.hpp"

namespace spinloom::strategies {

struct IntervalInput {
  uint64_t packets = 0;
  uint64_t payload_bytes = 0;
  uint32_t hpus = 0;
  Time packet_time;   // T_pkt
  Time handler_time;  // T_PH of this message
  int64_t epsilon_numerator = 1;
  int64_t epsilon_denominator = 5;
  uint64_t checkpoint_bytes = 0;         // NIC memory of one checkpoint, with all its copies
  uint64_t memory_bytes = 0;             // NIC memory for all checkpoints
  uint64_t packet_buffer_bytes = 0;
};

struct Interval {
  uint64_t packets = 1;      // packets that share a checkpoint
  uint64_t checkpoints = 1;
  Time dependency;           // T_pkt + j (P - 1) T_pkt
  Time allowed;              // epsilon * ceil(n / P) * T_PH
  bool exceeds_epsilon = false;
  bool exceeds_packet_buffer = false;  // memory required an interval longer than the packet buffer
  bool memory_decided = false;  // memory required a longer interval than the two conditions
};

[[nodiscard]] Result<Interval> checkpoint_interval(const IntervalInput& input);

}  // namespace spinloom::strategies
