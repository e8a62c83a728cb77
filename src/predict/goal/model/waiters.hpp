// Waiters - sends, computations or messages of one rank that wait for the same busy CPU, or CPU and NIC.
//
// Contract: the one with the smallest number leads: it is in the queue of events, for the time when its resources are
//   free as far as it knows. The others wait here; when it has begun, the next of them leads.
// Invariants: (1) each would begin where it would if all were in the queue of events and went back there whenever they
//   find the resources busy: at (max(its time, when the resources are free), number), the smallest first; (2) `time` is
//   the latest for which one of them, the leader too, would be there; an event that would be there for an earlier time
//   does not wait here (the clocks of a resource go back where a size of 0 wraps); (3) the chain is in order of
//   numbers, and events that come later are in the heap.
// Threads: one owner. Time: modelled.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "predict/goal/model/event_queue.hpp"

namespace spinloom::goal {

struct Waiters {
  uint64_t time = 0;
  uint32_t leader = none;
  uint32_t first = none;
  uint32_t last = none;
  std::vector<std::pair<uint64_t, uint32_t>> out_of_order;  // a heap by number

  void add(EventQueue& queue, uint32_t event) {
    Event& added = queue[event];
    if (last != none && added.number < queue[last].number) {
      out_of_order.emplace_back(added.number, event);
      std::ranges::push_heap(out_of_order, std::greater{});
      return;
    }
    added.next = none;
    (last == none ? first : queue[last].next) = event;
    last = event;
  }

  // Takes the event with the smallest number; none if nothing waits.
  [[nodiscard]] uint32_t take(EventQueue& queue) {
    if (!out_of_order.empty() && (first == none || out_of_order.front().first < queue[first].number)) {
      std::ranges::pop_heap(out_of_order, std::greater{});
      const uint32_t taken = out_of_order.back().second;
      out_of_order.pop_back();
      return taken;
    }
    if (first == none) return none;
    const uint32_t taken = std::exchange(first, queue[first].next);
    if (first == none) last = none;
    return taken;
  }
};

}  // namespace spinloom::goal
