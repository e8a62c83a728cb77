// Contexts - an execution context as a program gives it, checked and made on the NIC.
//
// Contract: make_spin() makes a context and what it holds, or nothing. The answer is PTL_OK, or the one for the
// program. Threads: the rank's. Time: it waits for the NIC's answers.
#pragma once

#include "portals4_spin.h"
#include "ptl/process.hpp"

namespace spinloom::ptl {

[[nodiscard]] int make_spin(Process& process, const ptl_spin_t& given, const NetworkInterface& interface, Spin& made);

}  // namespace spinloom::ptl
