// HostModel - what unpacking costs the modelled host.
//
// Contract: T = (lines fetched + lines written back) * line / copy rate + blocks * cycles a block. Lines are those
//   that a cold last-level cache of the profile (host_cache.hpp) moves for the touched ranges; the cost a block
//   is a measured one with warm data. Fixed before any speed-up is looked at; `spinloom hostmodel` compares it
//   with loops on the machine at hand.
// Threads: pure. Time: modelled, in ps.
#pragma once

#include <cstdint>

#include "portals/port.hpp"
#include "sim/profile.hpp"

namespace spinloom::sim {

struct HostCost {
  uint64_t line_fetches = 0;
  uint64_t line_writebacks = 0;
  Time lines;   // part of the time that moves lines
  Time blocks;  // part that finds blocks and copies them
  [[nodiscard]] Time total() const { return lines + blocks; }
};

[[nodiscard]] HostCost host_cost(const Profile& profile, const portals::HostWork& work);

}  // namespace spinloom::sim
