// WritesUnderWay - counts the writes to host memory in flight, from the request until the last byte is there.
//
// Contract: the owner calls asked(at) for each write, whose bytes are on the NIC at `at`, and landed(at, now) when a
//   write has left the NIC, with the time of its landing, in that order. peak() is the largest number in flight;
//   total() is the time in flight summed over the writes, so total() divided by a span that holds all of it is the mean
//   number in flight (Little's law). A write that lands at a time is no longer in flight at that time. restart()
//   forgets all writes but those still in flight.
// Invariants: (1) when results are read, every write that was asked for has left the NIC.
// Threads: one owner. Time: virtual; `now` never falls, `at` may lie in the future and never falls for landed().
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <vector>

#include "base/assert.hpp"
#include "base/units.hpp"

namespace spinloom::simulated {

class WritesUnderWay {
 public:
  void asked(Time at) { asked_.push(at); }

  // Counts up to `now`, because all requests and landings until then are known.
  void landed(Time at, Time now) {
    SPL_ASSERT(landed_.empty() || at >= landed_.back(), "a write lands at ", at, ", before an earlier one");
    landed_.push_back(at);
    while (!asked_.empty() && asked_.top() <= now) {
      while (!landed_.empty() && landed_.front() <= asked_.top()) one_less();
      go_to(asked_.top());
      asked_.pop();
      peak_ = std::max(peak_, ++count_);
    }
  }

  void restart(Time now) {
    while (!landed_.empty() && landed_.front() <= now) one_less();
    go_to(now);
    total_ps_ = 0;
    peak_ = count_;
  }

  [[nodiscard]] uint64_t peak() const { return peak_; }
  [[nodiscard]] Time total() const {
    SPL_ASSERT(count_ == landed_.size(), count_, " writes in flight, ", landed_.size(), " have left");
    int64_t sum = total_ps_;
    for (const Time landing : landed_) sum += (landing - reached_).ps;
    return {sum};
  }

 private:
  void one_less() {
    SPL_ASSERT(count_ > 0, "a write landed that nobody had asked for");
    go_to(landed_.front());
    landed_.pop_front();
    --count_;
  }
  void go_to(Time time) {
    total_ps_ += (time - reached_).ps * static_cast<int64_t>(count_);
    reached_ = time;
  }

  // Writes that are asked for later than `reached_`, and landings after it.
  std::priority_queue<Time, std::vector<Time>, std::greater<>> asked_;
  std::deque<Time> landed_;
  Time reached_{};
  int64_t total_ps_ = 0;
  uint64_t count_ = 0;
  uint64_t peak_ = 0;
};

}  // namespace spinloom::simulated
