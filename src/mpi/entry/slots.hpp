// Slots - small numbers for the open requests of a program, by their handles.
//
// Contract: add() gives a request the lowest free slot. find() returns the first slot of a handle that no call has
//   claimed, or `none`; claim() also marks it as claimed. remove() frees a slot.
// Invariants: (1) MPIs give one handle to several requests that have ended when they are made (short sends): of these,
//   the request that was added first is found first. With threads, an MPI may give the handle of an ended request to a
//   new one before the call that ended the first is written down. Claims keep the two apart.
// Threads: the caller's lock. Time: none.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "mpi/entry/handle_map.hpp"

namespace spinloom::mpi {

class Slots {
 public:
  static constexpr uint32_t none = UINT32_MAX;
  struct Slot {
    bool is_persistent = false;
    bool is_active = false;  // true for a persistent request while it is started, and for all others
    bool has_wildcard = false;  // a receive of any source or any tag
    bool is_claimed = false;  // a call that may complete it has claimed it
    bool is_cancelling = false;  // MPI_Cancel was called for it: its end shows whether it was cancelled
    uint32_t next = none;  // the next slot with the same handle
  };

  uint32_t add(uint64_t handle, bool is_persistent, bool has_wildcard) {
    const uint32_t slot = take_lowest();
    slots_[slot] = {is_persistent, !is_persistent, has_wildcard, false, false, none};
    wanted_statuses_ += has_wildcard ? 1 : 0;
    if (Queue* const same = by_handle_.find(handle)) {
      slots_[same->last].next = slot;
      same->last = slot;
    } else {
      by_handle_.put(handle, {slot, slot});
    }
    return slot;
  }
  [[nodiscard]] uint32_t find(uint64_t handle) {
    const Queue* const found = by_handle_.find(handle);
    uint32_t slot = found == nullptr ? none : found->first;
    while (slot != none && slots_[slot].is_claimed) slot = slots_[slot].next;
    return slot;
  }
  // Finds the slot for a call that may complete the request. No other call finds it until `is_claimed` is reset.
  [[nodiscard]] uint32_t claim(uint64_t handle) {
    const uint32_t slot = find(handle);
    if (slot != none) slots_[slot].is_claimed = true;
    return slot;
  }
  [[nodiscard]] Slot& at(uint32_t slot) { return slots_[slot]; }
  // Frees the slot that find() returns.
  void remove(uint64_t handle) { remove(handle, find(handle)); }
  void remove(uint64_t handle, uint32_t slot) {
    Queue* const found = by_handle_.find(handle);
    if (found == nullptr || slot == none) return;
    const uint32_t next = slots_[slot].next;
    if (found->first == slot) {
      found->first = next;
    } else {
      uint32_t before = found->first;
      while (slots_[before].next != slot) before = slots_[before].next;
      slots_[before].next = next;
      if (found->last == slot) found->last = before;
    }
    wanted_statuses_ -= wants_status(slots_[slot]) ? 1 : 0;
    free_[slot / 64] |= uint64_t{1} << slot % 64;
    if (slot / 64 < lowest_word_) lowest_word_ = slot / 64;
    if (found->first == none) by_handle_.erase(handle);
  }
  void set_cancelling(uint32_t slot, bool is_cancelling) {
    Slot& changed = slots_[slot];
    wanted_statuses_ -= wants_status(changed) ? 1 : 0;
    changed.is_cancelling = is_cancelling;
    wanted_statuses_ += wants_status(changed) ? 1 : 0;
  }
  // True if the status of an open request must be read: of a receive from any source or with any tag, or of a request
  // that MPI_Cancel was called for.
  [[nodiscard]] bool any_wants_status() const { return wanted_statuses_ != 0; }

 private:
  struct Queue {
    uint32_t first = none;
    uint32_t last = none;
  };
  static bool wants_status(const Slot& slot) { return slot.has_wildcard || slot.is_cancelling; }
  uint32_t take_lowest() {
    while (lowest_word_ < free_.size() && free_[lowest_word_] == 0) ++lowest_word_;
    if (lowest_word_ == free_.size()) {
      free_.push_back(~uint64_t{0});
      slots_.resize(64 * free_.size());
    }
    const auto bit = static_cast<uint32_t>(std::countr_zero(free_[lowest_word_]));
    free_[lowest_word_] &= free_[lowest_word_] - 1;
    return static_cast<uint32_t>(64 * lowest_word_) + bit;
  }

  HandleMap<Queue> by_handle_;
  std::vector<Slot> slots_;
  std::vector<uint64_t> free_;  // a bit for each slot
  size_t lowest_word_ = 0;  // no word before this one has a free slot
  uint32_t wanted_statuses_ = 0;  // number of open requests whose status must be read
};

}  // namespace spinloom::mpi
