// HostProbe - times loops on this machine, for comparison with the host model.
//
// Contract: measured host time, never modelled time. measure_unpack() compares its destination with the oracle before
//   it gives a time; measure_rates() compares nothing, and one of its loops walks without copying. Cold: all lines of
//   message and array are flushed before each repetition (clflush on x86; elsewhere 256 MiB are walked).
// Threads: any; run one at a time for meaningful times. Time: the steady clock, in ns.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "portals/interface/port.hpp"
#include "simulated/node/host_model.hpp"
#include "simulated/node/profile.hpp"

namespace spinloom::app {

// Medians of `repetitions`.
struct HostMeasure {
  int64_t bytes = 0;
  int64_t blocks = 0;
  double cold_ns = 0;  // an unpack as MPITypes does it, with nothing in the caches
};
[[nodiscard]] Result<HostMeasure> measure_unpack(const std::string& type_text, int64_t count, int repetitions);

// The model's parameters as measured on this machine (simulated/node/host_model.hpp).
struct HostRates {
  double start_ns = 0;           // one cold block of 8 B
  double streamed_line_ns = 0;   // a line of a cold copy that prefetchers follow
  double strided_line_ns = 0;    // a line of cold blocks at a stride too long for a prefetcher
  double scattered_line_ns = 0;  // a line of cold blocks in shuffled order
  double refilled_line_ns = 0;   // a line that the first-level cache lost
  double vector_block_ns = 0;    // one block with warm data, as MPITypes copies
  double list_block_ns = 0;      // one listed block, otherwise the same
  double best_vector_block_ns = 0;  // vector_block_ns by our copy kernels
  double best_list_block_ns = 0;    // list_block_ns by our copy kernels
  double segment_block_ns = 0;  // one block found by a walk over the compact program, nothing copied
};
[[nodiscard]] Result<HostRates> measure_rates(int repetitions);

// The model's prediction for the same message: its counts, and the time with the profile's parameters.
struct HostPrediction {
  portals::HostWork::Blocks blocks;
  simulated::HostCost cost;
};
[[nodiscard]] Result<HostPrediction> predict_unpack(const simulated::Profile& profile, const std::string& type_text,
                                                    int64_t count);

}  // namespace spinloom::app
