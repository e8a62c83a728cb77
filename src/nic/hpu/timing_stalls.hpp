// Stalls - cycles in which nothing retired (PulpTiming: issued), by the reason that held up the next instruction.
//
// Threads: plain values. Time: HPU cycles.
#pragma once

#include <cstdint>

namespace spinloom::hpu {

struct Stalls {
  uint64_t front_end = 0;
  uint64_t operand = 0;
  uint64_t unit = 0;
  uint64_t window = 0;
  uint64_t device = 0;
  uint64_t latency = 0;
};

}  // namespace spinloom::hpu
