// Communicators - the same number for a communicator on all ranks.
//
// Contract: ranks number communicators by themselves. Members make those of the same groups in the same order, so that
//   the n-th one of its groups is the same for all. Of an intercommunicator both sides share a number.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trace/trace.hpp"

namespace spinloom::predict {

class Communicators {
 public:
  explicit Communicators(std::span<const trace::RankTrace> traces);
  [[nodiscard]] uint32_t number(uint32_t rank, uint32_t comm) const { return numbers_[rank][comm]; }

 private:
  std::vector<std::vector<uint32_t>> numbers_;  // by rank, and by its own number
};

}  // namespace spinloom::predict
