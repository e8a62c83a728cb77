// Release - gives the objects of an interface back to the NIC, whatever objects the program has left behind.
//
// Contract: release() forgets interface `number` of a process. The interface must be marked as closing, so that no
//   other call finds it while release() waits. Objects that the NIC still uses stay with the NIC. If another thread
//   is releasing the same interface, release() waits until that is done. It returns true if there is no such interface;
//   it returns false, and forgets nothing, if a peer may still write to the interface's memory.
// Threads: the rank's. Time: that of the host.
#pragma once

#include "portals/calls/process.hpp"

namespace spinloom::calls {

[[nodiscard]] bool release(Process& process, uint32_t number);

}  // namespace spinloom::calls
