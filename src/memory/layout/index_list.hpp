// IndexList - a list of displacements or array sizes that also knows in which form it was written.
//
// Contract: a list is explicit values, range(first, step, n) or rand(seed, bound, n): the first n of a Fisher-Yates
//   shuffle of 0 .. bound-1. Entry i of the shuffle is swapped with entry i + below(bound - i) for i = 0 .. n-1;
//   numbers come from Random(seed, "layout.rand").
// Invariants: (1) a range never takes memory for its entries; (2) rand takes O(n) memory and time if the bound is
//   large, and O(bound) up to a bound of 2^22; (3) equal() compares how lists are written, not only what they hold.
// Threads: immutable after construction. Time: none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace spinloom::layout {

class IndexList {
 public:
  enum class Form : uint8_t { values, range, random };

  IndexList() = default;
  IndexList(std::vector<int64_t> values);  // NOLINT: a plain list is a list
  static Result<IndexList> range(int64_t first, int64_t step, int64_t count);
  static Result<IndexList> random(uint64_t seed, int64_t bound, int64_t count);

  [[nodiscard]] int64_t size() const { return count_; }
  [[nodiscard]] int64_t operator[](int64_t i) const {
    return values_ ? (*values_)[static_cast<size_t>(i)] : first_ + i * step_;
  }
  [[nodiscard]] Form form() const { return form_; }
  [[nodiscard]] int64_t first() const { return first_; }
  [[nodiscard]] int64_t step() const { return step_; }
  [[nodiscard]] uint64_t seed() const { return seed_; }
  [[nodiscard]] int64_t bound() const { return bound_; }

  [[nodiscard]] bool equal(const IndexList& other) const;

 private:
  Form form_ = Form::values;
  int64_t count_ = 0;
  int64_t first_ = 0;
  int64_t step_ = 0;
  uint64_t seed_ = 0;
  int64_t bound_ = 0;
  std::shared_ptr<const std::vector<int64_t>> values_;
};

}  // namespace spinloom::layout
