// Contexts - checks an execution context as a program describes it, and makes it on the NIC.
//
// Contract: make_spin() makes the context and the NIC memory of its constants, and writes the initial state to the
//   program's HPU memory. If it fails, it gives back what it has made. It returns PTL_OK or the error code for the
//   program.
// Threads: the rank's. Time: it waits for the NIC's answers.
#pragma once

#include "portals/calls/process.hpp"
#include "portals4_spin.h"

namespace spinloom::calls {

[[nodiscard]] int make_spin(Process& process, const ptl_spin_t& arguments, const NetworkInterface& interface,
                            Spin& spin);

}  // namespace spinloom::calls
