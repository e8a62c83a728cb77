// SlotCounts - how often each slot or index is named, for checks of invariants.
//
// Contract: add() counts a slot; of() is how often it was counted, 0 for a slot that was never named.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <vector>

namespace spinloom::spin {

class SlotCounts {
 public:
  void add(uint32_t slot) {
    if (slot >= counts_.size()) counts_.resize(size_t{slot} + 1);
    ++counts_[slot];
  }
  [[nodiscard]] uint32_t of(uint32_t slot) const { return slot < counts_.size() ? counts_[slot] : 0; }

 private:
  std::vector<uint32_t> counts_;
};

}  // namespace spinloom::spin
