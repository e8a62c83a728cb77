#include "predict/goal/model/counter_windows.hpp"

#include <algorithm>
#include <bit>

namespace spinloom::goal {

using schedule::Edge;
using schedule::Join;
using schedule::Program;

uint32_t CounterWindows::open(const Program& program) {
  if (unused_.empty()) {
    unused_.push_back(static_cast<uint32_t>(windows_.size()));
    windows_.emplace_back();
  }
  const uint32_t opened = unused_.back();
  unused_.pop_back();
  const bool is_forward = program.is_forward();
  Window window;
  window.size = is_forward ? size_least : std::bit_ceil(std::max(program.size(), size_least));
  window.first = take_ring(window.size);
  windows_[opened] = window;
  if (!is_forward) (void)of(opened, program, program.size());
  return opened;
}

void CounterWindows::close(uint32_t window) {
  rings_[windows_[window].size].push_back(windows_[window].first);
  unused_.push_back(window);
}

uint32_t CounterWindows::take_ring(uint32_t size) {
  std::vector<uint32_t>& rings = rings_[size];
  if (rings.empty()) {
    rings.push_back(static_cast<uint32_t>(counters_.size()));
    counters_.resize(counters_.size() + size);
  }
  const uint32_t taken = rings.back();
  rings.pop_back();
  return taken;
}

Counter* CounterWindows::of(uint32_t number, const Program& program, uint32_t operation) {
  Window& window = windows_[number];
  for (; window.seen < operation; ++window.seen) {
    program.each_edge(window.seen, [&](Edge edge) {
      if (edge.to() >= window.high) make_room(window, edge.to());
      Counter& counter = at(window, edge.to());
      if (edge.join() == Join::all) {
        ++counter.left;
      } else if (!counter.wants_first) {
        counter.wants_first = true;
        ++counter.left;
      }
    });
  }
  return operation < window.low || operation >= window.high ? nullptr : &at(window, operation);
}

void CounterWindows::make_room(Window& window, uint32_t operation) {
  if (operation - window.low >= window.size) forget(window);
  if (operation - window.low >= window.size) {
    Window larger = window;
    larger.size = std::bit_ceil(operation - window.low + 1);
    larger.first = take_ring(larger.size);
    for (uint32_t one = window.low; one < window.high; ++one) at(larger, one) = at(window, one);
    rings_[window.size].push_back(window.first);
    window = larger;
  }
  while (window.high <= operation) at(window, window.high++) = {};
}

// Drops the Counters of operations that have begun: those before `seen` at the low end that wait for nothing.
void CounterWindows::forget(Window& window) {
  while (window.low < window.seen && window.low < window.high && at(window, window.low).left == 0) ++window.low;
  if (window.low == window.high && window.low < window.seen) window.low = window.high = window.seen;
}

}  // namespace spinloom::goal
