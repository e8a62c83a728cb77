// HandleMap - a map from MPI handles to values, made for lookups that mostly find nothing.
//
// Contract: find() returns the value's address or null; put() adds or replaces a value; erase() returns false if there
//   was none.
// Invariants: (1) open addressing with linear probes, at most half full; (2) addresses of values hold until the next
//   put() or erase(), both of which may move values.
// Threads: the caller's lock. Time: none.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace spinloom::mpi {

template <class Value>
class HandleMap {
 public:
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] size_t size() const { return size_; }

  [[nodiscard]] Value* find(uint64_t key) {
    if (size_ == 0) return nullptr;
    for (size_t i = home_of(key);; i = next(i)) {
      if (!cells_[i].is_used) return nullptr;
      if (cells_[i].key == key) return &cells_[i].value;
    }
  }

  Value& put(uint64_t key, Value value) {
    if (2 * (size_ + 1) > cells_.size()) grow();
    size_t i = home_of(key);
    while (cells_[i].is_used && cells_[i].key != key) i = next(i);
    if (!cells_[i].is_used) ++size_;
    cells_[i] = {key, true, std::move(value)};
    return cells_[i].value;
  }

  bool erase(uint64_t key) {
    if (size_ == 0) return false;
    size_t hole = home_of(key);
    while (cells_[hole].key != key || !cells_[hole].is_used) {
      if (!cells_[hole].is_used) return false;
      hole = next(hole);
    }
    // Cells behind the hole move up unless they already lie at or behind their own place.
    for (size_t i = next(hole); cells_[i].is_used; i = next(i)) {
      const size_t home = home_of(cells_[i].key);
      if (((i - home) & mask()) < ((i - hole) & mask())) continue;
      cells_[hole] = std::move(cells_[i]);
      hole = i;
    }
    cells_[hole] = {};
    --size_;
    return true;
  }

  template <class Visit>  // visit(key, value)
  void for_each(Visit&& visit) {
    for (auto& cell : cells_) {
      if (cell.is_used) visit(cell.key, cell.value);
    }
  }

 private:
  struct Cell {
    uint64_t key = 0;
    bool is_used = false;
    Value value{};
  };

  [[nodiscard]] size_t mask() const { return cells_.size() - 1; }
  [[nodiscard]] size_t next(size_t i) const { return (i + 1) & mask(); }
  [[nodiscard]] size_t home_of(uint64_t key) const { return (key * 0x9e37'79b9'7f4a'7c15 >> 32) & mask(); }

  void grow() {
    std::vector<Cell> old(cells_.empty() ? 64 : 2 * cells_.size());
    old.swap(cells_);
    size_ = 0;
    for (Cell& cell : old) {
      if (cell.is_used) put(cell.key, std::move(cell.value));
    }
  }

  std::vector<Cell> cells_;
  size_t size_ = 0;
};

// Handles that the MPI has freed. The MPI's callbacks add them here: a callback may hold locks of the MPI, so it must
// not wait for the layer's lock. Threads: any.
class FreedHandles {
 public:
  void add(uint64_t key) {
    const std::lock_guard lock(mutex_);
    keys_.push_back(key);
    any_.store(true, std::memory_order_release);
  }
  [[nodiscard]] bool any() const { return any_.load(std::memory_order_acquire); }
  // Calls visit(key) for each handle, and forgets them.
  template <class Visit>
  void take_each(Visit&& visit) {
    const std::lock_guard lock(mutex_);
    for (const uint64_t key : keys_) visit(key);
    keys_.clear();
    any_.store(false, std::memory_order_relaxed);
  }

 private:
  std::mutex mutex_;
  std::vector<uint64_t> keys_;
  std::atomic<bool> any_{false};
};

}  // namespace spinloom::mpi
