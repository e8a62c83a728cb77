// Crowding - whether the ranks of a machine have to share processors.
//
// Contract: processors_of() says on which processors the system lets a process run. are_crowded() says whether the rank
//   with index `own` has to share its processors. That is so if there are more ranks than processors, or if more ranks
//   run only on processors of this rank than it has processors, or if this rank's processors are not known. Ranks that
//   a launcher gives a processor each are not crowded.
// Threads: any. Time: none.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace spinloom::process {

using Processors = std::vector<uint64_t>;  // processor p is bit p % 64 of word p / 64

// Empty if the system does not tell.
[[nodiscard]] Processors processors_of(pid_t process);

// Another rank's empty set counts as the set of `own`.
[[nodiscard]] bool are_crowded(const std::vector<Processors>& ranks, size_t own);

}  // namespace spinloom::process
