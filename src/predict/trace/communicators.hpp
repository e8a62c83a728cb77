// Communicators - the same number for a communicator on all ranks.
//
// Contract: ranks number communicators by themselves. Members make those of the same groups and of the same parent in
//   the same order, so that the n-th one of its groups and its parent is the same for all. Threads may make them of
//   different parents at once.
// Invariants: (1) of an intercommunicator both sides share a number.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "predict/trace/trace.hpp"

namespace spinloom::trace {

class Communicators {
 public:
  explicit Communicators(std::span<const RankTrace* const> traces);
  // Returns the number that a communicator has on all ranks; `comm` is its number in the trace.
  [[nodiscard]] uint32_t number_of(size_t trace, uint32_t comm) const { return numbers_[trace][comm]; }

 private:
  std::vector<std::vector<uint32_t>> numbers_;
};

}  // namespace spinloom::trace
