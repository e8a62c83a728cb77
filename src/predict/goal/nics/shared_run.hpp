// Shared run - one schedule whose ranks are at two fidelities: a sample has NICs, the others are at message level.
//
// Contract: run_shared() runs the sample's hosts on the NICs and the others in an Engine, with a Seam between. An
//   all-NIC sample is a run of run_hosts(), an empty one a run of run(), to the picosecond. A schedule that stalls is
//   the error of run().
// Invariants: (1) events of both happen in one order of time; at one moment those at message level come first, and then
//   those of the NICs in the order of their clock.
// Threads: one owner. Time: modelled.
#pragma once

#include "predict/goal/model/model.hpp"
#include "predict/goal/model/sample.hpp"
#include "predict/goal/nics/host.hpp"
#include "simulated/node/profile.hpp"

namespace spinloom::goal {

struct Sharing {
  const simulated::Profile& profile;
  const Sample& sample;
};

[[nodiscard]] Result<Outcome> run_shared(Nics& nics, Payloads& payloads, Rate copy, const schedule::Schedule& schedule,
                                         const Model& model, const Sharing& sharing, const Watch& watch);

}  // namespace spinloom::goal
