// Release - gives an interface's objects back to the NIC, whatever the program left behind.
//
// Contract: release() forgets interface `number` of a process, which is closing, so that nobody else finds it while
//   release() waits; what the NIC still uses stays with the NIC. Where another thread releases it, release() waits for
//   that. False: a peer may still write to its memory, and nothing has been forgotten.
// Threads: the rank's. Time: that of the host.
#pragma once

#include "ptl/process.hpp"

namespace spinloom::ptl {

[[nodiscard]] bool release(Process& process, uint32_t number);

}  // namespace spinloom::ptl
