// Fault - says on stderr why the process dies of SIGSEGV.
//
// Contract: tell_faults(), once, installs a handler where the signal has none. The handler writes what tell_fault()
//   writes, and lets the process die. tell_fault() names the address, the thread, the memory of the driver that holds
//   the address or held it last, the mappings around it, and the calls that led there.
// Threads: any. Time: none.
#pragma once

#include <signal.h>

namespace fake {

void tell_faults();
void tell_fault(const siginfo_t& info);

}  // namespace fake
