// Broadcast - one message from rank 0 to all ranks along a binomial tree, by the ways of a study.
//
// Contract: run_broadcast() is run_study() for Experiment::broadcast. Host programs run side by side: each reacts when
//   its own counter says that the message is in, whatever the others do.
// Threads: any number of calls side by side. Time: modelled, in ps.
#pragma once

#include "app/studies/study.hpp"

namespace spinloom::app {

[[nodiscard]] Result<StudyResult> run_broadcast(const StudyConfig& config, const LoadedImages& loaded);

}  // namespace spinloom::app
