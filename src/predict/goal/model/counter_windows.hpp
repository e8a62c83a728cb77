// Counter windows - how much each operation of a rank still waits for: kept for those under way only.
//
// Contract: a window has a Counter for each operation from the first that may still wait to the farthest to which an
//   edge of an examined operation leads. of() examines all operations before the one that it is called for, because
//   their edges give its dependencies. It returns the operation's Counter, or null if the operation has begun before.
//   The caller then counts down the dependency that has come.
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
  uint64_t ready_ps = 0;  // as far as is known
  uint32_t left = 0;
  bool has_first = false;  // one of those that its any-of edges wait for has come
  bool wants_first = false;  // it has any-of edges
};

class CounterWindows {
 public:
  [[nodiscard]] uint32_t open(const schedule::Program& program);
  void close(uint32_t window);
  // The pointer is valid until the next call.
  [[nodiscard]] Counter* of(uint32_t window, const schedule::Program& program, uint32_t operation);
  [[nodiscard]] size_t counters() const { return counters_.size(); }  // in memory

 private:
  struct Window {
    uint32_t low = 0;  // all before it have begun
    uint32_t high = 0;  // behind the last that has a Counter
    uint32_t seen = 0;  // the edges of all before it have been counted
    uint32_t first = 0;  // its Counters, a ring
    uint32_t size = 0;  // of the ring, a power of two
  };
  static constexpr uint32_t size_least = 8;

  [[nodiscard]] Counter& at(const Window& window, uint32_t operation) {
    return counters_[window.first + (operation & (window.size - 1))];
  }
  [[nodiscard]] uint32_t take_ring(uint32_t size);
  void make_room(Window& window, uint32_t operation);
  void forget(Window& window);

  std::vector<Window> windows_;
  std::vector<uint32_t> unused_;
  LargeVector<Counter> counters_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> rings_;  // unused ones, by size
};

}  // namespace spinloom::goal
