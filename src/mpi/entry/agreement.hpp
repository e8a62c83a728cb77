// Agreement - all ranks of a communicator agree, without a message, on the call from which on a kind goes another way.
//
// Contract: a communicator has a Ballot in shared memory, and each of its ranks counts its collective calls there, once
//   it has found the ballot (take()); before that it counts for itself. begin_call() counts a call, and returns true if
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
  static constexpr uint64_t counting = 1;
  std::array<std::atomic<uint64_t>, kinds> from;  // number of a call; 0: no proposal; counting: no number yet
};

class Voter {
 public:
  [[nodiscard]] uint64_t calls() const { return calls_; }
  // `own`: the count of this rank's calls from now on, which must hold calls().
  void take(Ballot* ballot, std::atomic<uint64_t>* own) {
    ballot_ = ballot;
    own_ = own;
  }

  // The counts of all ranks of the communicator.
  using Counts = std::span<std::atomic<uint64_t>* const>;
  [[nodiscard]] bool begin_call(uint32_t kind, Counts counts) {
    ++calls_;
    if (ballot_ == nullptr) return false;
    own_->store(calls_, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const uint64_t from = ballot_->from[kind].load(std::memory_order_acquire);
    return from != 0 && calls_ >= (from == Ballot::counting ? await(kind, counts) : from);
  }
  // True if there is no proposal for this kind.
  [[nodiscard]] bool is_open(uint32_t kind) const { return ballot_->from[kind].load(std::memory_order_relaxed) == 0; }
  // Does nothing if there is a proposal already. If the kernel has no such barrier, the calls keep their old way for
  // ever.
  void propose(uint32_t kind, Counts counts);

 private:
  [[nodiscard]] uint64_t await(uint32_t kind, Counts counts);
  uint64_t count(uint32_t kind, Counts counts);

  Ballot* ballot_ = nullptr;
  std::atomic<uint64_t>* own_ = nullptr;
  uint64_t calls_ = Ballot::counting;  // numbers of calls are greater
};

// Registers this process for the barriers of others; returns false if the kernel has none. Every rank must call it
// before any rank proposes.
[[nodiscard]] bool heed_barriers();

}  // namespace spinloom::mpi
