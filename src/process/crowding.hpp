// Crowding - whether the ranks of a machine share processors.
//
// Contract: processors_of() says where the system lets a process run; are_crowded() whether, of ranks that may run
//   there, the one at `own` has to share: there are more ranks than processors, or more ranks that run only where it
//   runs than it has processors. A launcher that gives each rank a processor of its own does not crowd them, however
//   few each has.
// Threads: any. Time: none.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace spinloom::process {

using Processors = std::vector<uint64_t>;  // processor p is bit p % 64 of word p / 64

// Empty where the system does not say.
[[nodiscard]] Processors processors_of(pid_t process);

// Ranks of which nothing is known run where `own` does.
[[nodiscard]] bool are_crowded(const std::vector<Processors>& ranks, size_t own);

}  // namespace spinloom::process
