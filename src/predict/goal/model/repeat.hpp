// Repeat - a schedule again and again: each rank begins once more when all of its operations have ended.
//
// Contract: repeat() gives each Program `times` passes. Behind its operations comes a computation of 0 that waits for
//   all ends, and operations that wait for nothing in a pass wait for the computation of the pass before.
//   repeat_with_pauses() gives each rank a Program of its own in one pass, in which that computation takes a random one
//   of 1024 times evenly spread between two bounds. It makes each Program only when it is needed: one of them is in
//   memory at a time. Errors are 0 times, a schedule with passes, bounds in the wrong order, and more operations of a
//   rank than there may be.
// Invariants: (1) with times of 0, repeat_with_pauses() gives the same results as repeat(); (2) a rank's times depend
//   on the seed and its number only.
// Threads: pure. Time: of computations, in the unit of the schedule's author.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "predict/schedule/schedule.hpp"
#include "predict/schedule/schedule_file.hpp"

namespace spinloom::goal {

[[nodiscard]] Result<schedule::Schedule> repeat(const schedule::Schedule& schedule, uint32_t times);

struct PauseRange {
  uint64_t least = 0;
  uint64_t most = 0;
  uint64_t seed = 1;
};
// Writes the schedule in our own form.
[[nodiscard]] Status repeat_with_pauses(const schedule::Schedule& schedule, uint32_t times, const PauseRange& pauses,
                                        const schedule::ByteSink& sink);

}  // namespace spinloom::goal
