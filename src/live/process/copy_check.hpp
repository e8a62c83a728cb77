// CopyCheck - finds out whether processes of this machine can read each other's memory, and what forbids it.
//
// Contract: check_copies() starts two children of this process; one reads a word of the other's memory, as two ranks of
//   a job would. explain() says what the outcome means. If reading does not work and the reason is known, it also names
//   that reason and, where there is one, the smallest change that would help.
// Invariants: (1) nothing on the machine is changed; (2) both children have ended when check_copies() returns.
// Threads: call it before the process starts any. Time: that of two processes.
#pragma once

#include <string>

namespace spinloom::process {

struct CopyFacts {
  int error = 0;  // errno of process_vm_readv; 0: it works
  int ptrace_scope = -1;  // kernel.yama.ptrace_scope; -1: this kernel has none
  bool can_ptrace = false;  // CAP_SYS_PTRACE
  bool has_seccomp_filter = false;  // a seccomp filter sees our system calls
};

// The facts of this process; `error` is not set.
[[nodiscard]] CopyFacts facts_of_this_process();
[[nodiscard]] CopyFacts check_copies();
[[nodiscard]] std::string explain(const CopyFacts& facts);

}  // namespace spinloom::process
