// Slab - numbered slots of one type with a free list: O(1) take and give back, stable addresses.
//
// Contract: take() hands out the index of a freshly constructed T; give_back() ends its use and makes the
//   index available again. References stay valid while their slot is taken, whatever else is taken.
// Invariants: (1) size() slots are taken; (2) the slot given back last is taken next, so that the same
//   calls give the same indices on every machine.
// Threads: one owner. Time: none.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "base/assert.hpp"

namespace spinloom::spin {

inline constexpr uint32_t no_slot = UINT32_MAX;

template <class T>
class Slab {
 public:
  struct NewSlot {
    uint32_t index;
    T& value;
  };
  // Makes T{parts...} in its place.
  template <class... Parts>
  [[nodiscard]] uint32_t take(Parts&&... parts) {
    return make(std::forward<Parts>(parts)...).index;
  }
  template <class... Parts>
  [[nodiscard]] NewSlot make(Parts&&... parts) {
    uint32_t index;
    if (!free_.empty()) {
      index = free_.back();
      free_.pop_back();
    } else {
      SPL_ASSERT(created_ < no_slot, "all ", created_, " slots are taken");
      index = created_++;
      if (const Location location = location_of(index); location.offset == 0) {
        chunks_.push_back(std::make_unique<Slot[]>(slots_of(location.chunk)));
      }
    }
    Slot& slot = slot_at(index);
    SPL_ASSERT(!slot.in_use, "slot ", index, " is in use and was free");
    std::destroy_at(&slot.value);
    new (&slot.value) T{std::forward<Parts>(parts)...};
    slot.in_use = true;
    ++size_;
    return {index, slot.value};
  }

  void give_back(uint32_t index) {
    Slot& slot = slot_at(index);
    SPL_ASSERT(slot.in_use, "slot ", index, " given back twice");
    SPL_ASSERT(size_ > 0, "slot ", index);
    slot.in_use = false;
    free_.push_back(index);
    --size_;
  }

  // Always inlined: a look-up takes a few instructions, and a message needs dozens of look-ups.
  [[nodiscard, gnu::always_inline]] T& operator[](uint32_t index) {
    Slot& slot = slot_at(index);
    SPL_ASSERT(slot.in_use, "slot ", index, " is not in use");
    return slot.value;
  }
  [[nodiscard, gnu::always_inline]] const T& operator[](uint32_t index) const {
    return const_cast<Slab&>(*this)[index];
  }

  [[nodiscard]] bool is_taken(uint32_t index) const { return index < created_ && at(index).in_use; }
  [[nodiscard]] uint32_t size() const { return size_; }

  // Visits taken slots in index order, at the cost of looking at every slot that was ever taken.
  template <class Visit>
  void for_each(Visit visit) const {
    for (uint32_t i = 0; i < created_; ++i) {
      if (is_taken(i)) visit(i, at(i).value);
    }
  }

  // Throws InternalError if an invariant is broken. For tests: looks at every slot that was ever taken.
  void check_invariants() const {
    uint32_t taken = 0;
    for_each([&taken](uint32_t, const T&) { ++taken; });
    SPL_ASSERT(taken == size_ && size_ + free_.size() == created_, taken, " slots are taken and ", free_.size(),
               " free of ", created_, "; the size is ", size_);
  }

 private:
  // The first chunk is small, because most slabs of a NIC stay small. Each further chunk doubles the number of slots.
  static constexpr uint32_t first_slots = 4;
  struct Slot {
    T value{};
    bool in_use = false;
  };
  struct Location {
    uint32_t chunk;
    uint32_t offset;  // index within the chunk
  };
  [[nodiscard]] static constexpr Location location_of(uint32_t index) {
    const auto chunk = static_cast<uint32_t>(std::bit_width(index / first_slots));
    return {chunk, chunk == 0 ? index : index - slots_of(chunk)};
  }
  [[nodiscard]] static constexpr uint32_t slots_of(uint32_t chunk) {
    return chunk == 0 ? first_slots : first_slots << (chunk - 1);
  }

  [[nodiscard, gnu::always_inline]] Slot& at(uint32_t index) const {
    const Location location = location_of(index);
    return chunks_[location.chunk][location.offset];
  }

  [[nodiscard, gnu::always_inline]] Slot& slot_at(uint32_t index) {
    SPL_ASSERT(index < created_, "slot ", index, " of ", created_);
    return at(index);
  }

  std::vector<std::unique_ptr<Slot[]>> chunks_;
  std::vector<uint32_t> free_;
  uint32_t created_ = 0;
  uint32_t size_ = 0;
};

}  // namespace spinloom::spin
