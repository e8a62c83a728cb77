// Counter windows - how much each operation of a rank still waits for: kept for those under way only.
//
// Contract: a window has a Counter for each operation from the first that may still wait to the farthest to which an
//   edge of an examined operation leads. counter_of() examines all operations before the one that it is called for,
//   because their edges give its dependencies. It returns the operation's Counter, or null if the operation has begun
//   before. The caller then counts down the dependency that has come.
// Invariants: (1) where all edges go forward, a window has at least eight Counters, and no more than twice the
//   operations between the first that has not begun and the farthest to which an edge of an examined operation leads;
//   (2) where some go back, there is one for each operation from the start on; (3) later windows use the memory of
//   closed ones.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/large_vector.hpp"
#include "predict/schedule/schedule.hpp"

namespace spinloom::goal {

struct Counter {
  uint64_t ready_ps = 0;  // the latest time of the dependencies that have come
  uint32_t pending = 0;  // dependencies that have not come
  bool is_any_met = false;  // one of the operations that its any-of edges wait for has come
  bool has_any_edges = false;  // it has any-of edges
};

class CounterWindows {
 public:
  // Returns the number of a new window.
  [[nodiscard]] uint32_t open(const schedule::Program& program);
  void close(uint32_t number);
  // Examines the operations before this one, which may add Counters. The pointer is valid until the next call.
  [[nodiscard]] Counter* counter_of(uint32_t number, const schedule::Program& program, uint32_t operation);
  // The counters of all windows and unused rings.
  [[nodiscard]] size_t counter_count() const { return counters_.size(); }

 private:
  struct Window {
    uint32_t first = 0;  // the first operation that has a Counter: all before it have begun
    uint32_t end = 0;  // the operation behind the last one that has a Counter
    uint32_t examined_end = 0;  // the edges of all operations before this one have been counted
    uint32_t ring_begin = 0;  // the place of its ring of Counters in counters_
    uint32_t ring_size = 0;  // a power of two
  };
  static constexpr uint32_t ring_size_min = 8;

  [[nodiscard]] Counter& counter_at(const Window& window, uint32_t operation) {
    return counters_[window.ring_begin + (operation & (window.ring_size - 1))];
  }
  [[nodiscard]] uint32_t take_ring(uint32_t size);
  // Gives a Counter to each operation up to this one.
  void extend_to(Window& window, uint32_t operation);
  void drop_begun(Window& window);

  std::vector<Window> windows_;
  std::vector<uint32_t> unused_windows_;
  LargeVector<Counter> counters_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> unused_rings_;  // places of unused rings in counters_, by size
};

}  // namespace spinloom::goal
