// Run - one seed of one scenario, from nothing to the verdict.
//
// Contract: the same configuration and seed give the same outcome, its hash (of every event in the order read, every
//   datagram in the order sent) included. What goes wrong, our own assertions included, is a violation: one sentence.
// Threads: one owner; runs share nothing. Time: none.
#pragma once

#include <cstdint>
#include <string>

#include "torture/config.hpp"

namespace spinloom::torture {

struct Outcome {
  std::string violation;  // empty: all is well
  uint64_t messages = 0;
  uint64_t exchanges = 0;
  uint64_t steps = 0;
  uint64_t hash = 0;
  FaultCounts faults{};
};

[[nodiscard]] Outcome run(const Config& config, uint64_t seed, bool trace = false);

}  // namespace spinloom::torture
