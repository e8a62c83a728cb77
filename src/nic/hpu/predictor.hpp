// Predictor - direction of branches (bimodal 2-bit counters), targets of indirect jumps (the last one) and
// return addresses (a circular stack).
//
// Contract: each call says whether the front end guessed right, and learns the outcome. Direct targets are always
//   known (a branch target buffer that always hits). The state stays warm across handlers.
// Invariants: the tables of counters and of indirect targets have a power-of-two size; counters start at "weakly not
//   taken"; the sequence of answers depends on the sequence of calls only.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <vector>

namespace spinloom::hpu {

class Predictor {
 public:
  Predictor(uint32_t entries, uint32_t indirect_entries, uint32_t return_stack)
      : counters_(entries, 1), indirect_(indirect_entries), returns_(return_stack, 0) {}

  // Learns a branch's direction. True if it was predicted right.
  bool predict_branch(uint32_t pc, bool taken) {
    uint8_t& counter = counters_[(pc >> 1) & (counters_.size() - 1)];
    const bool is_correct = (counter >= 2) == taken;
    const uint8_t up = static_cast<uint8_t>(counter < 3 ? counter + 1 : 3);
    const uint8_t down = static_cast<uint8_t>(counter > 0 ? counter - 1 : 0);
    counter = taken ? up : down;
    return is_correct;
  }

  // Learns an indirect jump that is not a return. True if it goes where it went last time.
  bool predict_indirect(uint32_t pc, uint32_t target) {
    Target& entry = indirect_[(pc >> 1) & (indirect_.size() - 1)];
    const bool is_correct = entry.pc == pc && entry.target == target;
    entry = {pc, target};
    return is_correct;
  }

  void push_return(uint32_t address) {
    top_ = top_ + 1 == returns_.size() ? 0 : top_ + 1;
    returns_[top_] = address;
  }
  // Takes the top address off the return stack. True if it is the target.
  bool pop_return(uint32_t target) {
    const bool is_correct = returns_[top_] == target;
    top_ = top_ == 0 ? static_cast<uint32_t>(returns_.size()) - 1 : top_ - 1;
    return is_correct;
  }

 private:
  struct Target {
    uint32_t pc = 1;  // odd: no instruction lives there
    uint32_t target = 0;
  };

  std::vector<uint8_t> counters_;
  std::vector<Target> indirect_;
  std::vector<uint32_t> returns_;
  uint32_t top_ = 0;
};

}  // namespace spinloom::hpu
