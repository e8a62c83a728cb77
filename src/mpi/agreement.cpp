#include "mpi/agreement.hpp"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace spinloom::mpi {
namespace {

constexpr uint64_t counting = 1;

bool membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

bool heed_barriers() { return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED); }

uint64_t Voter::decided(uint32_t kind, uint64_t from) const {
  while (from == counting) {  // for the time of a system call
    sched_yield();
    from = ballot_->from[kind].load(std::memory_order_acquire);
  }
  return from == 0 ? UINT64_MAX : from;
}

void Voter::propose(uint32_t kind, std::span<std::atomic<uint64_t>* const> counts) {
  std::atomic<uint64_t>& from = ballot_->from[kind];
  uint64_t nobody = 0;
  if (!from.compare_exchange_strong(nobody, counting)) return;
  if (!membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED)) {
    from.store(UINT64_MAX, std::memory_order_release);
    return;
  }
  uint64_t last = 0;
  for (const std::atomic<uint64_t>* const count : counts) last = std::max(last, count->load(std::memory_order_acquire));
  from.store(last + 1, std::memory_order_release);
}

// The last one makes the ballot as new. Until then each number stays: others may still propose, and must not choose a call
// that a rank has made before it left.
void Voter::leave(std::span<std::atomic<uint64_t>* const> counts) {
  if (ballot_->left.fetch_add(1, std::memory_order_acq_rel) + 1 < counts.size()) return;
  for (std::atomic<uint64_t>* const count : counts) count->store(0, std::memory_order_relaxed);
  for (auto& from : ballot_->from) from.store(0, std::memory_order_relaxed);
  ballot_->left.store(0, std::memory_order_relaxed);
  ballot_->is_taken.store(0, std::memory_order_release);
}

}  // namespace spinloom::mpi
