// Fifo - a growing ring buffer: first in, first out, no allocation once it has reached its size.
//
// Contract: push() appends, pop() returns the oldest element; pop() of an empty Fifo is a bug.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/assert.hpp"

namespace spinloom::spin {

template <class T>
class Fifo {
 public:
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] size_t size() const { return count_; }

  void push(T value) {
    if (count_ == ring_.size()) grow();
    ring_[(first_ + count_) & (ring_.size() - 1)] = std::move(value);
    ++count_;
  }

  [[nodiscard]] T& front() {
    SPL_ASSERT(count_ > 0);
    return ring_[first_];
  }

  // The element that has `older` elements before it.
  [[nodiscard]] const T& operator[](size_t older) const { return ring_[(first_ + older) & (ring_.size() - 1)]; }

  T pop() {
    T value = std::move(front());
    drop();
    return value;
  }

  // Drops the oldest element. A reference to it stays valid until the next push().
  void drop() {
    first_ = (first_ + 1) & (ring_.size() - 1);
    --count_;
  }

 private:
  void grow() {
    std::vector<T> larger(ring_.empty() ? 16 : ring_.size() * 2);
    for (size_t i = 0; i < count_; ++i) larger[i] = std::move(ring_[(first_ + i) & (ring_.size() - 1)]);
    ring_.swap(larger);
    first_ = 0;
  }

  std::vector<T> ring_;  // the size is a power of two, so that positions wrap with a mask
  size_t first_ = 0;
  size_t count_ = 0;
};

}  // namespace spinloom::spin
