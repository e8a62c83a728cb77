// PacketAllocator - slots of the packet memory, in classes of one size each.
//
// Contract: class_of() finds the smallest class that holds a frame. take() gives the slot of a class that has been free
//   for longest; give_back() puts it at the end of the class's queue. A class without a free slot does not borrow from
//   a larger one: so small frames never take the room of large ones. Source: FPsPIN, deliverable D4.7, section 4.2.3.2:
//   most frames have either at most 128 B or the size of the MTU.
// Invariants: (1) slots never overlap; (2) free and taken slots of a class add up to its count.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "nic/spin/fifo.hpp"

namespace spinloom::frames {

struct SlotClass {
  uint32_t slots = 0;
  uint32_t bytes = 0;  // the size of each slot
};

class PacketAllocator {
 public:
  struct Slot {
    uint32_t address = 0;  // offset in the packet memory
    uint32_t slot_class = 0;
  };

  // The board's: 256 slots of 1,536 B, and behind them 1,024 of 128 B: 512 KiB.
  static std::vector<SlotClass> board() { return {{256, 1536}, {1024, 128}}; }

  // Classes in the order of their addresses. An Error says which one is empty, or too large.
  static Result<PacketAllocator> create(const std::vector<SlotClass>& classes);

  // The class that takes frames of this length; none: no class is large enough.
  [[nodiscard]] std::optional<uint32_t> class_of(uint32_t length) const;
  [[nodiscard]] std::optional<Slot> take(uint32_t slot_class);
  void give_back(Slot slot);

  [[nodiscard]] uint32_t free(uint32_t slot_class) const {
    return static_cast<uint32_t>(pools_[slot_class].free.size());
  }
  [[nodiscard]] uint32_t used_slots() const { return used_slots_; }
  [[nodiscard]] uint32_t classes() const { return static_cast<uint32_t>(pools_.size()); }
  [[nodiscard]] uint32_t largest_slot_bytes() const { return largest_slot_bytes_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }  // the size of the packet memory

  // Throws InternalError if an invariant is broken. For tests: looks at all slots. `taken` are those that users have.
  void check_invariants(const std::vector<Slot>& taken) const;

 private:
  struct Pool {
    SlotClass size;
    uint32_t start = 0;
    spin::Fifo<uint32_t> free;
  };
  PacketAllocator() = default;

  std::vector<Pool> pools_;
  std::vector<uint32_t> by_size_;  // classes, the smallest slots first
  uint32_t used_slots_ = 0;
  uint32_t largest_slot_bytes_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace spinloom::frames
