// HostModel - the cost of packing and unpacking on the modelled host.
//
// Contract: T = L + streamed * L / Q_s + strided * L / Q_r + scattered * L / Q_i + refilled * R + evicted * line / B
//   + sum over kinds of blocks * cycles:
//   L the memory's latency (of the first fetch); Q_s, Q_r, Q_i the fetches that one core keeps in flight where
//   prefetchers help, where a regular stride lets it run ahead, and where neither is so (Little's law); R the price of
//   a line that the near cache lost and the last level still has, at most what a line in its place would cost from
//   memory; B the memory's bandwidth: memory never takes less than all fetched and evicted lines take at B. Lines are
//   those that cold caches of the profile (for warm work: a last level that has seen the ranges once) move for the
//   touched ranges until the last byte is in its place; lines that are dirty then are written back later, which costs
//   this message nothing. Packing costs what unpacking does, with what is read and what is written exchanged. To post a
//   call costs host.call and the segment's walk over its blocks. To react to an event costs L and host.call. The cost
//   of a block was measured with warm data. The model was fixed before any speed-up was looked at; `spinloom
//   calibrate host` compares it with loops on the machine where it runs.
// Threads: pure. Time: modelled, in ps.
#pragma once

#include <cstdint>

#include "portals/interface/port.hpp"
#include "simulated/node/profile.hpp"

namespace spinloom::simulated {

struct HostCost {
  uint64_t lines_streamed = 0;
  uint64_t lines_strided = 0;
  uint64_t lines_scattered = 0;
  uint64_t lines_refilled = 0;  // lines that the near cache had lost, fetched from the last level
  uint64_t refilled_streamed = 0;  // refilled lines in an order that a prefetcher follows
  uint64_t refilled_strided = 0;  // refilled lines at a regular stride
  uint64_t lines_evicted = 0;  // dirty lines written back before the last byte was in its place
  uint64_t line_writebacks = 0;  // all dirty lines, also those written back later
  Time lines;  // the part of the time that waits for lines
  Time blocks;  // the part that finds blocks and copies them
  [[nodiscard]] uint64_t line_fetches() const { return lines_streamed + lines_strided + lines_scattered; }
  [[nodiscard]] Time total() const { return lines + blocks; }
};

[[nodiscard]] HostCost host_cost(const Profile& profile, const portals::HostWork& work);

}  // namespace spinloom::simulated
