// Labels - the operations of one rank by the names that GOAL text gives them.
//
// Contract: define() keeps a name that is not known yet, find() gives its operation; clear() forgets all. A name is
//   not copied: the text that it is part of stays where it is.
// Invariants: (1) at most half of the slots are taken; (2) clear() takes the same time however many names
//   there were, but once in 2^32 calls.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

namespace spinloom::schedule {

class Labels {
 public:
  struct Label {
    std::string_view name;
    uint32_t operation = 0;
  };

  void clear() {
    used_ = 0;
    if (++generation_ != 0) return;
    for (Slot& slot : slots_) slot.generation = 0;
    generation_ = 1;
  }

  // Returns null if the name is not defined.
  [[nodiscard]] const Label* find(std::string_view name) const {
    const Slot& slot = slots_[slot_of(name)];
    return slot.generation == generation_ ? &slot.label : nullptr;
  }

  void define(std::string_view name, uint32_t operation) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    slots_[slot_of(name)] = {{name, operation}, generation_};
    ++used_;
  }

 private:
  struct Slot {
    Label label;
    uint32_t generation = 0;  // the slot is free if this is not the current generation
  };

  // Returns the slot of a name, or the free one where it would be.
  [[nodiscard]] size_t slot_of(std::string_view name) const {
    size_t slot = std::hash<std::string_view>{}(name) & (slots_.size() - 1);
    while (slots_[slot].generation == generation_ && slots_[slot].label.name != name) {
      slot = (slot + 1) & (slots_.size() - 1);
    }
    return slot;
  }

  void grow() {
    const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
    for (const Slot& slot : old) {
      if (slot.generation == generation_) slots_[slot_of(slot.label.name)] = slot;
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(64);
  size_t used_ = 0;
  uint32_t generation_ = 1;
};

}  // namespace spinloom::schedule
