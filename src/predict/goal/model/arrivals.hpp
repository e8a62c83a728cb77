// Arrivals - how many one-sided operations have been done at each rank, by tag, and which operations wait for more.
//
// Contract: count() adds one arrival and returns the operations that waited for no more than are there now, in the
//   order in which they came. wait() keeps an operation that waits for more than there are. A counter never goes back.
// Threads: one owner. Time: none. Memory: for the tags in use only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace spinloom::goal {

class Arrivals {
 public:
  struct Waiter {
    uint64_t threshold = 0;
    uint64_t arrived = 0;  // the number that had arrived; first_that_waits() fills it in
    uint32_t operation = 0;
  };

  [[nodiscard]] uint64_t arrived(uint32_t rank, uint32_t tag) const {
    const auto counter = counters_.find(key(rank, tag));
    return counter == counters_.end() ? 0 : counter->second.arrived;
  }

  void wait(uint32_t rank, uint32_t tag, uint64_t threshold, uint32_t operation) {
    counters_[key(rank, tag)].waiting.push_back({threshold, 0, operation});
  }

  // Counts one arrival at the rank under the tag, and returns the operations that waited for no more than are there
  // now.
  [[nodiscard]] std::vector<uint32_t> count(uint32_t rank, uint32_t tag) {
    Counter& counter = counters_[key(rank, tag)];
    ++counter.arrived;
    std::vector<uint32_t> released;
    std::erase_if(counter.waiting, [&](const Waiter& one) {
      if (one.threshold > counter.arrived) return false;
      released.push_back(one.operation);
      return true;
    });
    return released;
  }

  // Returns the first operation under the smallest tag, among those that still wait at a rank.
  [[nodiscard]] std::optional<Waiter> first_that_waits(uint32_t rank) const {
    const auto first = counters_.lower_bound(key(rank, 0));
    for (auto counter = first; counter != counters_.end() && counter->first >> 32 == rank; ++counter) {
      if (counter->second.waiting.empty()) continue;
      Waiter waiter = counter->second.waiting.front();
      waiter.arrived = counter->second.arrived;
      return waiter;
    }
    return {};
  }

 private:
  struct Counter {
    uint64_t arrived = 0;
    std::vector<Waiter> waiting;
  };
  [[nodiscard]] static uint64_t key(uint32_t rank, uint32_t tag) { return uint64_t{rank} << 32 | tag; }

  std::map<uint64_t, Counter> counters_;
};

}  // namespace spinloom::goal
