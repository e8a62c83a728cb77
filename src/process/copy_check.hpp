// CopyCheck - whether processes of this machine can read each other's memory, and what forbids it.
//
// Contract: check_copies() lets one child of this process read a word of another, as two ranks of a job would;
//   explain() says what the outcome means and, where it does not work, the smallest cure, in one sentence each.
// Invariants: (1) nothing on the machine is changed; (2) both children have ended when check_copies() returns.
// Threads: call it before the process has any. Time: that of two processes.
#pragma once

#include <string>

namespace spinloom::process {

struct CopyFacts {
  int error = 0;          // errno of process_vm_readv; 0: it works
  int ptrace_scope = -1;  // kernel.yama.ptrace_scope; -1: this kernel has none
  bool may_trace = false;  // CAP_SYS_PTRACE
  bool filtered = false;   // a seccomp filter sees our system calls
};

// All but `error`, of this process.
[[nodiscard]] CopyFacts facts_of_this_process();
[[nodiscard]] CopyFacts check_copies();
[[nodiscard]] std::string explain(const CopyFacts& facts);

}  // namespace spinloom::process
