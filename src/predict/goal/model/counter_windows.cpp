#include "predict/goal/model/counter_windows.hpp"

#include <algorithm>
#include <bit>

namespace spinloom::goal {

using schedule::Edge;
using schedule::Join;
using schedule::Program;

uint32_t CounterWindows::open(const Program& program) {
  if (unused_windows_.empty()) {
    unused_windows_.push_back(static_cast<uint32_t>(windows_.size()));
    windows_.emplace_back();
  }
  const uint32_t number = unused_windows_.back();
  unused_windows_.pop_back();
  const bool is_forward = program.is_forward();
  Window window;
  window.ring_size = is_forward ? ring_size_min : std::bit_ceil(std::max(program.size(), ring_size_min));
  window.ring_begin = take_ring(window.ring_size);
  windows_[number] = window;
  if (!is_forward) (void)counter_of(number, program, program.size());
  return number;
}

void CounterWindows::close(uint32_t number) {
  const Window& window = windows_[number];
  unused_rings_[window.ring_size].push_back(window.ring_begin);
  unused_windows_.push_back(number);
}

uint32_t CounterWindows::take_ring(uint32_t size) {
  std::vector<uint32_t>& unused = unused_rings_[size];
  if (unused.empty()) {
    unused.push_back(static_cast<uint32_t>(counters_.size()));
    counters_.resize(counters_.size() + size);
  }
  const uint32_t ring_begin = unused.back();
  unused.pop_back();
  return ring_begin;
}

Counter* CounterWindows::counter_of(uint32_t number, const Program& program, uint32_t operation) {
  Window& window = windows_[number];
  for (; window.examined_end < operation; ++window.examined_end) {
    program.for_each_edge(window.examined_end, [&](Edge edge) {
      if (edge.to() >= window.end) extend_to(window, edge.to());
      Counter& counter = counter_at(window, edge.to());
      if (edge.join() == Join::all) {
        ++counter.pending;
      } else if (!counter.has_any_edges) {
        counter.has_any_edges = true;
        ++counter.pending;
      }
    });
  }
  return operation < window.first || operation >= window.end ? nullptr : &counter_at(window, operation);
}

void CounterWindows::extend_to(Window& window, uint32_t operation) {
  if (operation - window.first >= window.ring_size) drop_begun(window);
  if (operation - window.first >= window.ring_size) {
    Window larger = window;
    larger.ring_size = std::bit_ceil(operation - window.first + 1);
    larger.ring_begin = take_ring(larger.ring_size);
    for (uint32_t moved = window.first; moved < window.end; ++moved) {
      counter_at(larger, moved) = counter_at(window, moved);
    }
    unused_rings_[window.ring_size].push_back(window.ring_begin);
    window = larger;
  }
  while (window.end <= operation) counter_at(window, window.end++) = {};
}

// Drops the Counters at the beginning of the window whose operations have been examined and wait for nothing.
void CounterWindows::drop_begun(Window& window) {
  while (window.first < window.examined_end && window.first < window.end &&
         counter_at(window, window.first).pending == 0) {
    ++window.first;
  }
  if (window.first == window.end && window.first < window.examined_end) window.first = window.end = window.examined_end;
}

}  // namespace spinloom::goal
