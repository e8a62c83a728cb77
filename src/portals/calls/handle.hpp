// Handle - the 32-bit names of Portals objects in C programs, and the tables that find the objects.
//
// Contract: add() gives a new object a handle. find() returns the object of a handle. It returns null for a handle of
//   another kind or of another interface, for any number that add() did not give out, and for a handle that was
//   removed, until its place has been used again 511 times.
// Invariants: (1) a handle consists of kind (3 bits), interface (2), generation (9, never 0) and place (18); (2) no
//   handle equals 0, PTL_INVALID_HANDLE, PTL_EQ_NONE or PTL_CT_NONE; (3) a freed place is used again only after all
//   places that were freed before it, and then with another generation.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "portals4.h"

namespace spinloom::calls {

enum class Kind : uint8_t { interface, descriptor, entry, queue, counter, memory, stream, context };

struct HandleParts {
  Kind kind = Kind::interface;
  uint32_t interface = 0;
  uint32_t generation = 0;
  uint32_t place = 0;
};

inline constexpr uint32_t place_bits = 18;
inline constexpr uint32_t generation_bits = 9;
inline constexpr uint32_t interface_count = 4;
inline constexpr uint32_t generation_last = (1u << generation_bits) - 1;
inline constexpr uint32_t place_count = (1u << place_bits) - 1;  // the last place would be that of the reserved handles

[[nodiscard]] constexpr ptl_handle_any_t encode(const HandleParts& parts) {
  return static_cast<uint32_t>(parts.kind) << 29 | parts.interface << 27 | parts.generation << place_bits | parts.place;
}

[[nodiscard]] constexpr HandleParts decode(ptl_handle_any_t handle) {
  return {static_cast<Kind>(handle >> 29), handle >> 27 & 3, handle >> place_bits & generation_last,
          handle & ((1u << place_bits) - 1)};
}

// The objects of one kind of one interface.
template <class T>
class HandleTable {
 public:
  // Generations begin after `generation`: a new interface with an old number gives out other handles than before.
  HandleTable(Kind kind, uint32_t interface, uint32_t generation)
      : kind_(kind), interface_(interface), generation_(generation) {}

  // Returns PTL_INVALID_HANDLE if every place is taken.
  [[nodiscard]] ptl_handle_any_t add(T object) {
    uint32_t place = 0;
    if (slots_.size() < place_count) {
      place = static_cast<uint32_t>(slots_.size());
      slots_.push_back({nullptr, generation_});
    } else if (!free_.empty()) {
      place = free_.front();
      free_.pop_front();
    } else {
      return PTL_INVALID_HANDLE;
    }
    Slot& slot = slots_[place];
    slot.generation = slot.generation == generation_last ? 1 : slot.generation + 1;
    slot.object = std::make_unique<T>(std::move(object));
    ++size_;
    return encode({kind_, interface_, slot.generation, place});
  }

  [[nodiscard]] T* find(ptl_handle_any_t handle) const {
    const HandleParts parts = decode(handle);
    if (parts.kind != kind_ || parts.interface != interface_ || parts.place >= slots_.size()) return nullptr;
    const Slot& slot = slots_[parts.place];
    return slot.generation == parts.generation ? slot.object.get() : nullptr;
  }

  void remove(ptl_handle_any_t handle) {
    if (find(handle) == nullptr) return;
    const uint32_t place = decode(handle).place;
    slots_[place].object.reset();
    free_.push_back(place);
    --size_;
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (uint32_t place = 0; place < slots_.size(); ++place) {
      const Slot& slot = slots_[place];
      if (slot.object) visit(encode({kind_, interface_, slot.generation, place}), *slot.object);
    }
  }

  [[nodiscard]] uint32_t size() const { return size_; }

 private:
  struct Slot {
    std::unique_ptr<T> object;
    uint32_t generation = 0;
  };
  Kind kind_;
  uint32_t interface_;
  uint32_t generation_;
  uint32_t size_ = 0;
  std::vector<Slot> slots_;
  std::deque<uint32_t> free_;
};

}  // namespace spinloom::calls
