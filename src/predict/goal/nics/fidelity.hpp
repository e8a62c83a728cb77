// Fidelity - one schedule by three drivers: messages that cost LogGOPS, NICs that match, or whole simulated nodes.
//
// Contract: run_on() runs the schedule's hosts (host.hpp) on NICs of a profile. They share with run() of model.hpp who
//   gets which bytes and the order that the graph demands, o, O, S, computations and noise; L, g and G are the
//   profile's. Errors are those of run(), and: what a fidelity cannot do (adaptive routing, several NICs, sends with
//   any tag, tags apart, more nodes than limits::rank_count_max), memory beyond a named limit, wrong bytes.
// Threads: pure; one run is one thread's. Time: modelled, in picoseconds.
#pragma once

#include <cstdint>

#include "predict/goal/model/model.hpp"
#include "predict/goal/model/record.hpp"
#include "predict/goal/model/sample.hpp"
#include "predict/goal/model/watch.hpp"
#include "predict/schedule/schedule.hpp"
#include "simulated/node/profile.hpp"

namespace spinloom::goal {

enum class Fidelity : uint8_t {
  nic,  // every message is one packet, no bytes move
  full  // simulated nodes; bytes move and are checked
};

[[nodiscard]] Result<Outcome> run_on(Fidelity fidelity, const simulated::Profile& profile,
                                     const schedule::Schedule& schedule, const Model& model, Record* record = nullptr,
                                     const Watch& watch = {});

// Does the same for the ranks of a sample only; all others are at message level, and seam.hpp is between. The model's
// L, g and G apply to these others; L is at least the time of a byte from the link of one NIC to the host of another.
// Models with a network are refused.
[[nodiscard]] Result<Outcome> run_sample(Fidelity fidelity, const simulated::Profile& profile,
                                         const schedule::Schedule& schedule, const Model& model, const Sample& sample,
                                         const Watch& watch = {});

}  // namespace spinloom::goal
