// WritesUnderWay - counts the writes to host memory in flight, from the request until the last byte is there.
//
// Contract: the owner calls on_request(time) for each write, whose bytes are on the NIC at `time`, and on_landing(time,
//   now) when a write has left the NIC, with the time of its landing, in that order. peak() is the largest number in
//   flight; total() is the time in flight summed over the writes, so total() divided by a span that holds all of it is
//   the mean number in flight (Little's law). A write that lands at a time is no longer in flight at that time.
//   restart() forgets all writes but those still in flight.
// Invariants: (1) when results are read, every write that was asked for has left the NIC.
// Threads: one owner. Time: virtual; `now` never falls, `time` may lie in the future and never falls for on_landing().
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
  void on_request(Time time) { requests_.push(time); }

  // Counts up to `now`, because all requests and landings until then are known.
  void on_landing(Time time, Time now) {
    SPL_ASSERT(landings_.empty() || time >= landings_.back(), "a write lands at ", time, ", before an earlier one");
    landings_.push_back(time);
    while (!requests_.empty() && requests_.top() <= now) {
      while (!landings_.empty() && landings_.front() <= requests_.top()) retire_landing();
      advance_to(requests_.top());
      requests_.pop();
      peak_ = std::max(peak_, ++in_flight_);
    }
  }

  void restart(Time now) {
    while (!landings_.empty() && landings_.front() <= now) retire_landing();
    advance_to(now);
    total_ps_ = 0;
    peak_ = in_flight_;
  }

  [[nodiscard]] uint64_t peak() const { return peak_; }
  [[nodiscard]] Time total() const {
    SPL_ASSERT(in_flight_ == landings_.size(), in_flight_, " writes in flight, ", landings_.size(), " have left");
    int64_t sum = total_ps_;
    for (const Time landing : landings_) sum += (landing - counted_until_).ps;
    return {sum};
  }

 private:
  void retire_landing() {
    SPL_ASSERT(in_flight_ > 0, "a write landed that nobody had asked for");
    advance_to(landings_.front());
    landings_.pop_front();
    --in_flight_;
  }
  void advance_to(Time time) {
    total_ps_ += (time - counted_until_).ps * static_cast<int64_t>(in_flight_);
    counted_until_ = time;
  }

  // Writes that are asked for later than `counted_until_`, and landings after it.
  std::priority_queue<Time, std::vector<Time>, std::greater<>> requests_;
  std::deque<Time> landings_;
  Time counted_until_{};
  int64_t total_ps_ = 0;
  uint64_t in_flight_ = 0;
  uint64_t peak_ = 0;
};

}  // namespace spinloom::simulated
