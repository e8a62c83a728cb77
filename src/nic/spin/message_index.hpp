// MessageIndex - finds the slot that holds the message of a packet.
//
// Contract: add() gives a slot to a message that has none, find() returns the slot, remove() takes it away.
// Invariants: (1) a message is named by its source, an id such as a rank, and its number there; (2) no allocation once
//   the table has its size; (3) the table is at most half full, and has no tombstones: remove() moves later items of
//   the run up.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "nic/spin/slab.hpp"

namespace spinloom::spin {

template <class Source>
class MessageIndex {
 public:
  // Returns no_slot if the message has no slot.
  [[nodiscard]] uint32_t find(Source source, uint64_t message) const {
    for (size_t at = home_of(source.value, message);; at = next(at)) {
      const Item& item = items_[at];
      if (item.slot == no_slot || (item.message == message && item.source == source.value)) return item.slot;
    }
  }

  void add(Source source, uint64_t message, uint32_t slot) {
    SPL_ASSERT(slot != no_slot, "message ", message, " of ", source);
    if (2 * ++size_ > items_.size()) grow();
    insert({message, source.value, slot});
  }

  void remove(Source source, uint64_t message) {
    size_t hole = home_of(source.value, message);
    while (items_[hole].message != message || items_[hole].source != source.value) {
      SPL_ASSERT(items_[hole].slot != no_slot, "message ", message, " of ", source);
      hole = next(hole);
    }
    SPL_ASSERT(items_[hole].slot != no_slot, "message ", message, " of ", source);
    for (size_t at = next(hole); items_[at].slot != no_slot; at = next(at)) {
      const size_t home = home_of(items_[at].source, items_[at].message);
      if (distance(home, at) < distance(hole, at)) continue;  // this item would move ahead of its home
      items_[hole] = items_[at];
      hole = at;
    }
    items_[hole].slot = no_slot;
    SPL_ASSERT(size_ > 0, "message ", message, " of ", source);
    --size_;
  }

  [[nodiscard]] size_t size() const { return size_; }

 private:
  static constexpr size_t items_min = 64;
  struct Item {
    uint64_t message = 0;
    uint32_t source = 0;
    uint32_t slot = no_slot;
  };

  [[nodiscard]] size_t next(size_t at) const { return (at + 1) & (items_.size() - 1); }
  [[nodiscard]] size_t distance(size_t from, size_t to) const { return (to - from) & (items_.size() - 1); }
  [[nodiscard]] size_t home_of(uint32_t source, uint64_t message) const {
    // Numbers of messages grow in their upper half, and are similar at many sources: a multiplication spreads them.
    const uint64_t mixed = (message + uint64_t{source} * 0xbf58476d1ce4e5b9ULL) * 0x9e3779b97f4a7c15ULL;
    return static_cast<size_t>(mixed >> 32 ^ mixed >> 47) & (items_.size() - 1);
  }

  void insert(const Item& item) {
    size_t at = home_of(item.source, item.message);
    while (items_[at].slot != no_slot) {
      SPL_ASSERT(items_[at].message != item.message || items_[at].source != item.source, "message ", item.message,
                 " of ", item.source, " has two slots: ", items_[at].slot, " and ", item.slot);
      at = next(at);
    }
    items_[at] = item;
  }

  void grow() {
    const std::vector<Item> old_items = std::exchange(items_, std::vector<Item>(items_.size() * 2));
    for (const Item& item : old_items) {
      if (item.slot != no_slot) insert(item);
    }
  }

  std::vector<Item> items_ = std::vector<Item>(items_min);  // their number is a power of two
  size_t size_ = 0;
};

}  // namespace spinloom::spin
