// Study - the small experiments of the SC'17 sPIN paper (section 4.4): two ranks, one message, four ways to treat it.
//
// Contract: run_study() builds a world of two ranks, warms it up with one round, measures the next, and compares every
//   byte that the experiment moves or computes before it gives a time (Code::mismatch otherwise).
//   pingpong: rank 0 puts `bytes`, rank 1 answers with them; time_ps is half of the time from the put until all of the
//     answer is counted at rank 0.
//   accumulate: rank 1's array of complex numbers is multiplied by rank 0's message; time_ps is from the put until rank
//     1's host knows that the result is in its memory.
// Ways: rdma: the bytes land, rank 1's host sees the count in its memory and acts (host.memory_latency + host.call);
//   portals4: a triggered put answers without the host (pingpong only); store: handlers act when the message is in
//   host memory (pingpong only); stream: payload handlers act on each packet.
// Invariants: (1) the same config gives the same result on every machine.
// Threads: any number of calls side by side. Time: modelled, in ps.
#pragma once

#include <cstdint>
#include <string_view>

#include "app/setup.hpp"

namespace spinloom::app {

enum class Experiment : uint8_t { pingpong, accumulate };
enum class Way : uint8_t { rdma, portals4, store, stream };

[[nodiscard]] Result<Experiment> experiment_named(std::string_view name);
[[nodiscard]] Result<Way> way_named(std::string_view name);

struct StudyConfig : Setup {
  Experiment experiment = Experiment::pingpong;
  Way way = Way::rdma;
  uint64_t bytes = 8;
};

struct StudyResult {
  int64_t time_ps = 0;
  uint64_t handlers = 0;  // that ran in the measured round
  uint64_t handler_cycles = 0;
};

[[nodiscard]] Result<StudyResult> run_study(const StudyConfig& config);

}  // namespace spinloom::app
