// EventQueue - virtual time: the events of one simulation, in order.
//
// Contract: at(time, target, code, argument) calls target.on_event(code, argument) when virtual time
//   reaches `time`. One simulation is one thread; parallelism is across simulations.
// Invariants: (1) time never runs backwards; (2) the tie rule: of events of equal time the one with the lower `tie`
//   runs first; of equal ties, the one scheduled first. So the same input gives the same run on every machine. HPUs
//   have ties of their own (1 + index): the cuts between their slices change when events are scheduled, and must not
//   change the order in which they run.
// Threads: one owner. Time: this is virtual time's only source.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "base/units.hpp"

namespace spinloom::simulated {

class EventTarget {
 public:
  virtual void on_event(uint32_t code, uint64_t argument) = 0;

 protected:
  ~EventTarget() = default;
};

class EventQueue {
 public:
  void at(Time time, EventTarget& target, uint32_t code, uint64_t argument, uint32_t tie = 0) {
    SPL_ASSERT(time >= now_, "event at ", time, " scheduled at ", now_);
    heap_.push({time, sequence_++, &target, argument, code, tie});
  }

  // Runs the next event; false if there is none.
  bool step() {
    if (heap_.empty()) return false;
    const Scheduled next = heap_.top();
    heap_.pop();
    now_ = next.time;
    ++steps_;
    next.target->on_event(next.code, next.argument);
    return true;
  }

  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  // The time of the next event; called only if there is one.
  [[nodiscard]] Time next() const { return heap_.top().time; }
  [[nodiscard]] uint64_t steps() const { return steps_; }

 private:
  struct Scheduled {
    Time time;
    uint64_t sequence;
    EventTarget* target;
    uint64_t argument;
    uint32_t code;
    uint32_t tie;
    bool operator>(const Scheduled& other) const {
      if (time != other.time) return time > other.time;
      return tie != other.tie ? tie > other.tie : sequence > other.sequence;
    }
  };

  std::priority_queue<Scheduled, std::vector<Scheduled>, std::greater<>> heap_;
  Time now_{};
  uint64_t sequence_ = 0;
  uint64_t steps_ = 0;
};

}  // namespace spinloom::simulated
