// ByteRanges - which bytes of a message have come.
//
// Contract: add() joins a range with those that it touches. Invariants: (1) ranges are not empty, do not touch, and are
//   in order; (2) work grows with the logarithm of their number, and with how many a new one swallows.
// Threads: one owner. Time: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

namespace spinloom::slmp {

class ByteRanges {
 public:
  [[nodiscard]] bool contains(uint64_t begin, uint64_t end) const {
    if (begin == end) return true;
    const auto after = ends_.upper_bound(begin);
    return after != ends_.begin() && std::prev(after)->second >= end;
  }

  // True if the bytes overlap or touch a range, so that add() leaves no more ranges than before.
  [[nodiscard]] bool touches(uint64_t begin, uint64_t end) const {
    const auto after = ends_.upper_bound(end);
    return after != ends_.begin() && std::prev(after)->second >= begin;
  }

  void add(uint64_t begin, uint64_t end) {
    if (begin == end) return;
    auto after = ends_.upper_bound(begin);
    const bool longer = after != ends_.begin() && std::prev(after)->second >= begin;
    const auto at = longer ? std::prev(after) : ends_.emplace_hint(after, begin, end);
    at->second = std::max(at->second, end);
    while (after != ends_.end() && after->first <= at->second) {
      at->second = std::max(at->second, after->second);
      after = ends_.erase(after);
    }
  }

  [[nodiscard]] size_t count() const { return ends_.size(); }
  [[nodiscard]] uint64_t end() const { return ends_.empty() ? 0 : ends_.rbegin()->second; }

 private:
  std::map<uint64_t, uint64_t> ends_;  // the key is a range's begin
};

}  // namespace spinloom::slmp
