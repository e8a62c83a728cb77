// Remote fence - a memory barrier that one thread makes all running threads of all registered processes execute.
//
// Contract: after remote_fence() the caller sees everything that those threads had written before it, and everything
//   that the caller had written is seen by what they read afterwards. So the side that has to be fast needs no fence
//   of its own.
// Invariants: (1) register_for_remote_fences() says whether this kernel has remote fences (Linux 4.16 and later);
//   where it has none, both sides need fences of their own.
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
