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

  // Whether add() would make another range longer.
  [[nodiscard]] bool touches(uint64_t begin, uint64_t end) const {
    const auto after = ends_.upper_bound(end);
    return after != ends_.begin() && std::prev(after)->second >= begin;
  }

  void add(uint64_t begin, uint64_t end) {
    if (contains(begin, end)) return;
    auto at = ends_.upper_bound(begin);
    if (at != ends_.begin() && std::prev(at)->second >= begin) --at;
    while (at != ends_.end() && at->first <= end) {
      begin = std::min(begin, at->first);
      end = std::max(end, at->second);
      at = ends_.erase(at);
    }
    ends_.emplace_hint(at, begin, end);
  }

  [[nodiscard]] size_t count() const { return ends_.size(); }
  [[nodiscard]] uint64_t end() const { return ends_.empty() ? 0 : ends_.rbegin()->second; }

 private:
  std::map<uint64_t, uint64_t> ends_;  // by begin
};

}  // namespace spinloom::slmp
