// HostModel - what unpacking costs the modelled host.
//
// Contract: T = L + streamed * L / Q_s + strided * L / Q_r + scattered * L / Q_i + refilled * R + evicted * line / B
//   + sum over kinds of blocks * cycles:
//   L the memory's latency (of the first fetch); Q_s, Q_r, Q_i the fetches that one core keeps in flight where
//   prefetchers help, where a regular stride lets it run ahead, and where neither is so (Little's law); R the price of
//   a line that the near cache lost and the last level still has; B the memory's bandwidth. Lines are those that
//   cold caches of the profile move for the touched ranges until the last byte is in its place; lines that are dirty
//   then are written back later, in nobody's time. Packing costs what unpacking does, with what is read and written
//   exchanged. A call that is posted costs host.call and the segment's walk over its blocks. A block's cost is a
//   measured one with warm data. Fixed before any speed-up is looked at; `spinloom hostmodel` compares it with loops on
//   the machine at hand.
// Threads: pure. Time: modelled, in ps.
#pragma once

#include <cstdint>

#include "portals/port.hpp"
#include "sim/profile.hpp"

namespace spinloom::sim {

struct HostCost {
  uint64_t lines_streamed = 0;
  uint64_t lines_strided = 0;
  uint64_t lines_scattered = 0;
  uint64_t lines_refilled = 0;  // in the near cache, from the last level
  uint64_t lines_evicted = 0;  // written back before the end
  uint64_t line_writebacks = 0;  // with those at rest
  Time lines;  // part of the time that waits for lines
  Time blocks;  // part that finds blocks and copies them
  [[nodiscard]] uint64_t line_fetches() const { return lines_streamed + lines_strided + lines_scattered; }
  [[nodiscard]] Time total() const { return lines + blocks; }
};

[[nodiscard]] HostCost host_cost(const Profile& profile, const portals::HostWork& work);

}  // namespace spinloom::sim
