// The tables of recorded calls, each in the source that instantiates it. Threads: any. Time: none.
#pragma once

#include <span>

#include "mpi/abi/recorded.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

[[nodiscard]] std::span<const RecordingHook> message_calls();
[[nodiscard]] std::span<const RecordingHook> collective_calls();
[[nodiscard]] std::span<const RecordingHook> reduction_calls();
[[nodiscard]] std::span<const RecordingHook> window_calls();

}  // namespace spinloom::mpi::SPINLOOM_ABI
