// CopyProbe - times our copies on this machine, with the data in the caches where repeated use leaves it.
//
// Contract: measured host time, never modelled time. A checked movement is compared with the oracle (gaps and guards
//   included) before it is timed, which often takes longer than the timing. A sample is the mean of as many calls as
//   fill 40 us, judged by one call, and of at least one. A message of zero bytes is an Error.
// Threads: any; run one at a time for meaningful times. Time: the steady clock, in ns a call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/measure/line_walk.hpp"
#include "base/result.hpp"

namespace spinloom::app {

// Returns `samples` times of one call, in the order in which they were taken.
[[nodiscard]] Result<std::vector<double>> probe_copy(const std::string& type_text, int64_t count, Movement movement,
                                                     int samples, bool is_checked = true);

}  // namespace spinloom::app
