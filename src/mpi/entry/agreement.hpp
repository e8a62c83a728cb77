// Agreement - all ranks of a communicator agree, without a message, on the call from which on a kind goes another way.
//
// Contract: a communicator has a Ballot in shared memory, and each of its ranks counts its collective calls there, once
//   it has found the ballot (join()); before that it counts for itself. begin_call() counts a call, and returns true if
//   it goes the new way. propose() has the calls of one kind go that way from a number on that no rank has reached. No
//   rank proposes before all ranks have the ballot.
// Invariants: (1) all ranks make the same calls in the same order, so that the same number is the same call; (2) a rank
//   first writes the number of its call, then reads whether there is a proposal. propose() writes its proposal, makes
//   all ranks pass a memory barrier, then reads their numbers. So it has read the number of every rank that did not see
//   the proposal. The barrier is a system call (membarrier) of the rank that proposes: other calls need none; (3) a way
//   that was agreed on is kept; (4) a rank waits a short time only for a proposal's number: then it, too, makes the
//   barrier and reads the numbers, and the first number that is stored is kept.
// Threads: one at a time for each communicator. Time: none.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

namespace spinloom::mpi {

struct Ballot {
  static constexpr uint32_t kinds = 16;
  static constexpr uint64_t undecided = 1;
  std::array<std::atomic<uint64_t>, kinds> first_call;  // number of a call; 0: no proposal; undecided: no number yet
};

class Voter {
 public:
  [[nodiscard]] uint64_t calls() const { return calls_; }
  // `own_count`: the count of this rank's calls from now on, which must hold calls().
  void join(Ballot* ballot, std::atomic<uint64_t>* own_count) {
    ballot_ = ballot;
    own_count_ = own_count;
  }

  // The counts of all ranks of the communicator.
  using Counts = std::span<std::atomic<uint64_t>* const>;
  [[nodiscard]] bool begin_call(uint32_t kind, Counts counts) {
    ++calls_;
    if (ballot_ == nullptr) return false;
    own_count_->store(calls_, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const uint64_t first = ballot_->first_call[kind].load(std::memory_order_acquire);
    return first != 0 && calls_ >= (first == Ballot::undecided ? await(kind, counts) : first);
  }
  // True if there is no proposal for this kind.
  [[nodiscard]] bool is_open(uint32_t kind) const {
    return ballot_->first_call[kind].load(std::memory_order_relaxed) == 0;
  }
  // Does nothing if there is a proposal already. If the kernel has no such barrier, the calls keep their old way for
  // ever.
  void propose(uint32_t kind, Counts counts);

 private:
  [[nodiscard]] uint64_t await(uint32_t kind, Counts counts);
  uint64_t settle_number(uint32_t kind, Counts counts);

  Ballot* ballot_ = nullptr;
  std::atomic<uint64_t>* own_count_ = nullptr;
  uint64_t calls_ = Ballot::undecided;  // numbers of calls are greater
};

// Registers this process for the barriers of others; returns false if the kernel has none. Every rank must call it
// before any rank proposes.
[[nodiscard]] bool heed_barriers();

}  // namespace spinloom::mpi
