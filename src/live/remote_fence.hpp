// Remote fence - a memory barrier that one thread has all running threads of all registered processes execute.
//
// Contract: after remote_fence() whatever those threads had written before is seen here, and what was written here is
//   seen by what they read after. So the side that is in a hurry needs no fence of its own.
// Invariants: (1) register_for_remote_fences() answers whether this kernel has it (Linux 4.16); where it has not, both
//   sides need fences.
// Threads: any. Time: some microseconds for remote_fence().
#pragma once

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace spinloom::live {

[[nodiscard]] inline bool register_for_remote_fences() {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

inline void remote_fence() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

}  // namespace spinloom::live
