// Run - one seed of one scenario, from the beginning to the verdict.
//
// Contract: the same configuration and seed give the same outcome. Its hash covers every event in the order read and
//   every datagram in the order sent (lossy_links.hpp); in a run with frames, the frames that the NIC takes and gives.
//   Any trouble, our own assertions included, is a violation, described in one sentence.
// Threads: one owner; runs share nothing. Time: none.
#pragma once

#include <cstdint>
#include <string>

#include "torture/config.hpp"

namespace spinloom::torture {

struct Outcome {
  std::string violation;  // empty if nothing went wrong
  uint64_t messages = 0;
  uint64_t exchanges = 0;
  uint64_t steps = 0;
  uint64_t hash = 0;
  FaultCounts faults{};
};

[[nodiscard]] Outcome run(const Config& config, uint64_t seed, bool trace = false);

}  // namespace spinloom::torture
