// HostProbe - loops on the machine at hand that the host model is compared with.
//
// Contract: measured host time, never modelled time. Every loop unpacks real bytes, and its destination is compared
//   with the oracle before a time is given. Cold: all lines of message and array are flushed before each
//   repetition (clflush on x86; elsewhere a buffer larger than any cache is walked).
// Threads: any; run one at a time for meaningful times. Time: the steady clock, in ns.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "sim/profile.hpp"

namespace spinloom::app {

// Medians of `repetitions`.
struct HostMeasure {
  int64_t bytes = 0;
  int64_t blocks = 0;
  double cold_ns = 0;  // a segment's unpack with nothing in the caches
};
[[nodiscard]] Result<HostMeasure> measure_unpack(const std::string& type_text, int64_t count, int repetitions);

// What the model's two parameters are on this machine.
struct HostRates {
  double line_bytes_per_ns = 0;  // lines read, fetched for writing and written back, of one cold contiguous copy
  double block_ns = 0;           // one block of a segment's unpack with warm data
};
[[nodiscard]] Result<HostRates> measure_rates(int repetitions);

// What the model says for the same message: lines moved and blocks, and the time with the profile's parameters.
struct HostPrediction {
  int64_t lines = 0;
  int64_t blocks = 0;
  int64_t line_bytes = 0;
  int64_t time_ps = 0;
};
[[nodiscard]] Result<HostPrediction> predict_unpack(const sim::Profile& profile, const std::string& type_text,
                                                    int64_t count);

}  // namespace spinloom::app
