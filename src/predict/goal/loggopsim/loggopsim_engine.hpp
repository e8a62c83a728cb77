// LogGopSimEngine - one run of run_loggopsim().
//
// Invariants: (1) Costs are those of a Shape, in wrapping integers: a size of 0 costs one byte less than nothing; (2)
//   an operation that waits for one other has no counter; the counters of a rank exist only while one of its operations
//   needs them.
// Threads: one owner. Time: modelled.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/large_vector.hpp"
#include "predict/goal/loggopsim/loggopsim.hpp"
#include "predict/goal/model/event_queue.hpp"
#include "predict/goal/model/matching.hpp"
#include "predict/goal/model/plan.hpp"
#include "predict/goal/model/stall.hpp"
#include "predict/goal/model/waiters.hpp"

namespace spinloom::goal {

class LogGopSimEngine {
 public:
  // `begun`: the ranks for which the engine records each operation that has begun.
  LogGopSimEngine(const schedule::Schedule& schedule, const LogGopSimParameters& parameters, Begun* begun = nullptr);

  // Runs until nothing happens any more. Returns an error if `watch` has ended the run.
  Status run(const Watch& watch = {});
  [[nodiscard]] LogGopSimOutcome outcome() const;
  [[nodiscard]] bool has_stalled() const { return not_begun_ > 0 || unmatched_ > 0; }
  // Ranks on which something waits, the first few.
  [[nodiscard]] std::vector<uint32_t> stalled_ranks() const;
  // Returns an Error that names operations and what they wait for. It knows the operations that have not begun only for
  // the ranks of `begun`.
  [[nodiscard]] Error stall() const;

 private:
  struct Costs {
    uint64_t size;
    uint64_t cpu_time;  // the time for which the operation keeps its CPU
    uint64_t gap_time;  // the time for which a message keeps a NIC
    uint64_t receive_cpu_time;  // the time for which its message keeps the receiver's CPU
    uint32_t tag;
    uint32_t waiters;  // the index of the Waiters in which the operation waits
    uint32_t message_waiters;  // the index of the Waiters in which its message waits
    uint32_t cpu_index;  // the place of its CPU (places.hpp)
    uint32_t nic_index;  // the place of its NIC
    bool is_rendezvous;
    bool is_relative;
  };
  struct Rank {
    uint32_t not_begun = 0;  // operations that have not begun
    uint32_t counters = none;
    uint32_t waiters = none;
    Matching::List posted;
    Matching::List arrived;
  };

  void price_shapes();
  void begin_roots();

  [[nodiscard]] uint64_t& cpu_clock(uint32_t rank, uint32_t cpu) { return clocks_[rank * clocks_per_rank_ + cpu]; }
  [[nodiscard]] uint64_t& send_clock(uint32_t rank, uint32_t nic) {
    return clocks_[rank * clocks_per_rank_ + cpus_ + nic];
  }
  [[nodiscard]] uint64_t& receive_clock(uint32_t rank, uint32_t nic) {
    return clocks_[rank * clocks_per_rank_ + cpus_ + nics_ + nic];
  }

  // The operation of an event, and whether the event leads its Waiters.
  struct OperationEvent {
    uint32_t rank;
    uint32_t operation;
    bool is_leader;
  };
  [[nodiscard]] OperationEvent operation_of(uint32_t event) {
    const Event& waiting = queue_[event];
    return {waiting.rank, waiting.operation, waiting.is_leader};
  }

  // Each returns false if the event must wait, and makes it wait.
  bool send(uint64_t time, uint32_t event);
  bool compute(uint64_t time, uint32_t event);
  bool arrive(uint64_t time, uint32_t event);
  void receive(uint64_t time, uint32_t event);

  [[nodiscard]] Waiters& waiters_of(uint32_t rank, uint32_t index);
  void wait(uint64_t until, uint32_t event, uint32_t index);
  void lead_next(uint32_t rank, uint32_t index, uint64_t free_at);

  void begin(uint32_t rank, uint32_t operation);
  // `is_second`: the operation has ended before.
  void end(uint32_t rank, uint32_t operation, bool is_second = false);
  void raise_clocks(uint32_t rank, uint32_t cpu, uint32_t nic, uint64_t time);
  void count_down(uint32_t rank, uint32_t operation, bool is_second);
  void release(uint32_t rank, uint32_t operation, schedule::Awaits awaits, bool is_second);
  void push_freed();
  void push_freed(uint32_t rank, std::vector<uint32_t>& freed);
  void push_operation(uint32_t rank, uint32_t operation);

  const schedule::Schedule& schedule_;
  const LogGopSimParameters parameters_;
  Begun* const begun_;
  std::vector<Costs> costs_;  // one for each Shape
  std::vector<Plan> plans_;  // one for each Program
  LargeVector<Rank> ranks_;
  size_t cpus_ = 1;
  size_t nics_ = 1;
  size_t clocks_per_rank_ = 3;
  LargeVector<uint64_t> clocks_;  // each rank's CPUs, then the sending and then the receiving sides of its NICs
  EventQueue queue_;
  Matching matching_;
  LargeVector<Waiters> waiters_;
  uint32_t waiters_per_rank_ = 0;
  LargeVector<uint32_t> counters_;
  std::unordered_map<size_t, std::vector<uint32_t>> free_counters_;  // unused places, by number of counters
  // The operations that the current event has freed, on up to two ranks.
  std::vector<uint32_t> freed_[2];
  uint32_t freed_rank_[2] = {none, none};
  uint64_t next_number_ = 0;
  uint64_t not_begun_ = 0;
  uint64_t unmatched_ = 0;
  uint64_t never_ended_ = 0;
  uint64_t event_count_ = 0;
};

}  // namespace spinloom::goal
