// Misread - what LogGOPSim takes otherwise than a schedule in GOAL means it.
//
// Contract: LogGOPSim of 2023 orders the operations of a CPU only. There an operation begins when its own CPU is free,
//   though what it waits for on another one has not ended. At the receiver, a message occupies the CPU with the number
//   of its sender's CPU, though the receive may be on another one. misread() counts such dependencies, and the
//   ranks that get such messages: where a rank has receives of any source or tag, those whose CPUs are not as often
//   those of sends to it.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>

#include "predict/schedule/schedule.hpp"

namespace spinloom::schedule {

struct Misread {
  uint64_t edges = 0;  // edges of all ranks, from an operation of one CPU to one of another
  uint32_t receivers = 0;  // ranks that get such messages; wrong with a probability of 2^-64
  bool operator==(const Misread&) const = default;
};

[[nodiscard]] Misread misread(const Schedule& schedule);

}  // namespace spinloom::schedule
