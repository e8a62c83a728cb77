// Record - when each operation of a run was free, began and ended, and what it waited for.
//
// Contract: run() fills one in if it is given one. Ranks and operations are those of the schedule.
// Invariants: (1) memory is that of one Trace for each operation.
// Threads: one owner. Time: modelled, in picoseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "predict/goal/model/event_queue.hpp"
#include "predict/schedule/schedule.hpp"

namespace spinloom::goal {

struct Trace {
  uint64_t free_ps = 0;  // all that it waits for had come
  uint64_t posted_ps = 0;  // of a receive
  uint64_t begin_ps = 0;  // its CPU began to work for it
  uint64_t worked_ps = 0;  // its CPU worked for it until then
  uint64_t end_ps = 0;
  uint64_t left_ps = 0;  // of a send: the first byte of its message, or of its data
  uint64_t matched_ps = 0;  // of a receive: with its message, or with its request
  uint64_t there_ps = 0;  // of a receive: its message or its data
  uint32_t partner_rank = none;  // the rank with the other end of the message
  uint32_t partner = none;
  uint32_t before_post = none;  // a receive: the operation for which its CPU had worked last when it was posted
  uint32_t before = none;  // the operation for which its CPU had worked last when it began
  uint32_t first_came = none;  // the first to come of those that its any-of edges wait for
  bool is_late = false;  // a receive whose message or request had been there before it was posted
};

class Record {
 public:
  void start(const schedule::Schedule& schedule, size_t cpus) {
    first_.resize(schedule.ranks() + size_t{1});
    for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
      first_[rank + 1] = first_[rank] + schedule.program(rank).size();
    }
    traces_.assign(first_.back(), {});
    last_.assign(cpus, none);
  }
  [[nodiscard]] Trace& of(uint32_t rank, uint32_t operation) { return traces_[first_[rank] + operation]; }
  [[nodiscard]] const Trace& of(uint32_t rank, uint32_t operation) const { return traces_[first_[rank] + operation]; }

  void post(size_t cpu, uint64_t now, uint32_t rank, uint32_t receive) {
    of(rank, receive).posted_ps = now;
    of(rank, receive).before_post = last_[cpu];
  }
  void match(uint64_t now, uint32_t rank, uint32_t receive, uint32_t source, uint32_t send, bool is_late) {
    Trace& taker = of(rank, receive);
    taker.partner_rank = source;
    taker.partner = send;
    taker.matched_ps = now;
    taker.is_late = is_late;
    of(source, send).partner_rank = rank;
    of(source, send).partner = receive;
  }
  void work(size_t cpu, uint64_t begin_ps, uint64_t end_ps, uint32_t rank, uint32_t operation) {
    Trace& worker = of(rank, operation);
    worker.begin_ps = begin_ps;
    worker.worked_ps = end_ps;
    worker.before = last_[cpu];
    if (end_ps > begin_ps) last_[cpu] = operation;
  }

 private:
  std::vector<uint64_t> first_;  // by rank: the index of its first Trace
  std::vector<Trace> traces_;
  std::vector<uint32_t> last_;  // by CPU: the operation for which it has worked last
};

}  // namespace spinloom::goal
