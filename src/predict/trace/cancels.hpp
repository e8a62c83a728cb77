// Cancels - which sends or receives take part in matching, where a trace does not give the outcome of cancelling them.
//
// Contract: drop_surplus() takes away as many of `ends` as there are more than the `others` that they could meet, from
//   the last one on, and only ends that may have been cancelled: the first ones have met a message, and the last ones
//   have waited in vain.
// Threads: pure. Time: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace spinloom::trace {

// Returns the ends that were taken away, the last one first.
template <class End, class MayBeCancelled>
std::vector<End> drop_surplus(std::vector<End>& ends, size_t others, MayBeCancelled may_be_cancelled) {
  std::vector<End> dropped;
  std::vector<End> kept;
  for (size_t i = ends.size(); i-- > 0;) {
    const bool is_surplus = i + 1 + kept.size() > others;
    (is_surplus && may_be_cancelled(ends[i]) ? dropped : kept).push_back(ends[i]);
  }
  std::ranges::reverse(kept);
  ends = std::move(kept);
  return dropped;
}

}  // namespace spinloom::trace
