// Sample - which ranks of a schedule have NICs; the others are at message level.
//
// Contract: without a list all ranks have a NIC.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace spinloom::goal {

class Sample {
 public:
  Sample() = default;
  explicit Sample(std::vector<bool> ranks) : ranks_(std::move(ranks)) {}
  [[nodiscard]] bool has(uint32_t rank) const { return ranks_.empty() || ranks_[rank]; }

 private:
  std::vector<bool> ranks_;
};

}  // namespace spinloom::goal
