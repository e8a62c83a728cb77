// Record - when each operation of a run was free, began and ended, and what it waited for.
//
// Contract: run() fills one in if it is given one. Ranks and operations are those of the schedule.
// Invariants: (1) memory is that of one OperationTimes for each operation.
// Threads: one owner. Time: modelled, in picoseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "predict/goal/model/event_queue.hpp"
#include "predict/schedule/schedule.hpp"

namespace spinloom::goal {

struct OperationTimes {
  uint64_t ready_ps = 0;  // all that it waits for had come
  uint64_t posted_ps = 0;  // a receive: it was posted then
  uint64_t begin_ps = 0;  // its CPU began to work for it
  uint64_t cpu_end_ps = 0;  // its CPU worked for it until then
  uint64_t end_ps = 0;
  uint64_t departed_ps = 0;  // a send: the first byte of its message, or of its data, left then
  uint64_t matched_ps = 0;  // a receive: it met its message, or its request, then
  uint64_t arrived_ps = 0;  // its message, or its data, was there then; of a send known only if nobody had asked for it
  uint32_t partner_rank = none;  // the rank with the other end of the message
  uint32_t partner = none;  // the operation at the other end
  uint32_t previous_at_post = none;  // a receive: the operation for which its CPU had worked last when it was posted
  uint32_t previous_on_cpu = none;  // the operation for which its CPU had worked last when it began
  uint32_t first_came = none;  // the first to come of those that its any-of edges wait for
  bool is_late = false;  // a receive whose message or request had been there before it was posted
};

class Record {
 public:
  void start(const schedule::Schedule& schedule, size_t cpus) {
    first_index_.resize(schedule.ranks() + size_t{1});
    for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
      first_index_[rank + 1] = first_index_[rank] + schedule.program(rank).size();
    }
    times_.assign(first_index_.back(), {});
    last_on_cpu_.assign(cpus, none);
  }
  [[nodiscard]] OperationTimes& of(uint32_t rank, uint32_t operation) { return times_[first_index_[rank] + operation]; }
  [[nodiscard]] const OperationTimes& of(uint32_t rank, uint32_t operation) const {
    return times_[first_index_[rank] + operation];
  }

  void post(size_t cpu, uint64_t now, uint32_t rank, uint32_t receive) {
    of(rank, receive).posted_ps = now;
    of(rank, receive).previous_at_post = last_on_cpu_[cpu];
  }
  void match(uint64_t now, uint32_t rank, uint32_t receive, uint32_t source, uint32_t send, bool is_late) {
    OperationTimes& receive_times = of(rank, receive);
    receive_times.partner_rank = source;
    receive_times.partner = send;
    receive_times.matched_ps = now;
    receive_times.is_late = is_late;
    if (is_late) receive_times.arrived_ps = of(source, send).arrived_ps;
    of(source, send).partner_rank = rank;
    of(source, send).partner = receive;
  }
  void work(size_t cpu, uint64_t begin_ps, uint64_t end_ps, uint32_t rank, uint32_t operation) {
    OperationTimes& work_times = of(rank, operation);
    work_times.begin_ps = begin_ps;
    work_times.cpu_end_ps = end_ps;
    work_times.previous_on_cpu = last_on_cpu_[cpu];
    if (end_ps > begin_ps) last_on_cpu_[cpu] = operation;
  }

 private:
  std::vector<uint64_t> first_index_;  // one for each rank: the index of its first OperationTimes
  std::vector<OperationTimes> times_;
  std::vector<uint32_t> last_on_cpu_;  // the operation for which each CPU has worked last
};

}  // namespace spinloom::goal
