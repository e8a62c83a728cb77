// Model - the times of the parts of a collective operation that NICs carry on: LogGP with m.
//
// Contract: after Di Girolamo, Jolivet, Underwood and Hoefler, "Exploiting Offload Enabled Network Interfaces", section
//   II.B: LogGP (Alexandrov et al. 1995), and m, the time of a NIC to match a message and to begin operations that wait
//   for it. Our own parameters are a and A, the time of a combination in the host's memory; and h and z.
//   - A CPU takes o until the operations that it begins leave its NIC, and o until it sees that all has ended; no CPU
//     takes part between. So a ping-pong takes o + 2 (L + s G + m) + o, as in the paper.
//   - A NIC sends one message after the other, each for g + s G. It takes one message after the other, each for the
//     same time, or for h if that is longer: h is the time to find the message's entry.
//   - A message that leaves at t has landed at t + L + s G, if its receiver's NIC is free. Operations that wait for it
//     begin m later; z later if the message has no bytes, which need not be read and written.
//   - A NIC combines or copies one after the other, each for s A or s G. Operations that wait for it begin a or L + m
//     later.
// Threads: plain values. Time: modelled, in picoseconds; the time of n bytes is rounded up once.
#pragma once

#include <cstdint>

#include "base/units.hpp"

namespace spinloom::collective {

using Picoseconds = unsigned __int128;

struct Model {
  uint64_t o_ps = 0;
  uint64_t L_ps = 0;
  uint64_t g_ps = 0;
  uint64_t h_ps = 0;
  uint64_t m_ps = 0;
  uint64_t z_ps = 0;
  uint64_t a_ps = 0;
  Rate G = {};
  Rate A = {};

  [[nodiscard]] Picoseconds gap(uint64_t bytes) const { return g_ps + G.ps_up(bytes); }
  [[nodiscard]] Picoseconds take(uint64_t bytes) const { return gap(bytes) < h_ps ? h_ps : gap(bytes); }
  [[nodiscard]] uint64_t match(uint64_t bytes) const { return bytes == 0 ? z_ps : m_ps; }
  // From a message's begin until what waits for it begins.
  [[nodiscard]] Picoseconds hop(uint64_t bytes) const { return Picoseconds{L_ps} + G.ps_up(bytes) + match(bytes); }
  // A copy is a message to oneself, which takes a hop; this is a combination.
  [[nodiscard]] Picoseconds local(uint64_t bytes) const { return A.ps_up(bytes) + a_ps; }
};

}  // namespace spinloom::collective
