#include "mpi/entry/agreement.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "mpi/entry/spin.hpp"

namespace spinloom::mpi {
namespace {

bool membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

bool heed_barriers() { return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED); }

// Waits without sched_yield(), which costs a slice of the scheduler beside a thread that polls and does not yield. The
// proposer needs some microseconds, unless it has lost its own core.
uint64_t Voter::await(uint32_t kind, Counts counts) {
  constexpr int tries = 10'000;
  for (int i = 0; i < tries; ++i) {
    const uint64_t first = ballot_->first_call[kind].load(std::memory_order_acquire);
    if (first != Ballot::undecided) return first;
    pause_briefly();
  }
  return settle_number(kind, counts);
}

// Gives the proposal its number, and returns the number that it has.
uint64_t Voter::settle_number(uint32_t kind, Counts counts) {
  uint64_t number = UINT64_MAX;
  if (membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED)) {
    number = 0;
    for (const std::atomic<uint64_t>* const each : counts) {
      number = std::max(number, each->load(std::memory_order_acquire) + 1);
    }
  }
  uint64_t current = Ballot::undecided;
  const bool is_first = ballot_->first_call[kind].compare_exchange_strong(current, number, std::memory_order_acq_rel);
  return is_first ? number : current;
}

void Voter::propose(uint32_t kind, Counts counts) {
  uint64_t nobody = 0;
  if (ballot_->first_call[kind].compare_exchange_strong(nobody, Ballot::undecided)) settle_number(kind, counts);
}

}  // namespace spinloom::mpi
