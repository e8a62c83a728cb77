// Release - gives the objects of an interface back to the NIC, whatever the program has left behind.
//
// Contract: release() forgets interface `number` of a process. The interface must be marked as closing, so that no
//   other call finds it while release() waits. What the NIC still uses stays with the NIC. Where another thread is
//   releasing the same interface, release() waits until it is done. It returns false where a peer may still write to
//   the interface's memory; then nothing has been forgotten.
// Threads: the rank's. Time: that of the host.
#pragma once

#include "ptl/process.hpp"

namespace spinloom::ptl {

[[nodiscard]] bool release(Process& process, uint32_t number);

}  // namespace spinloom::ptl
