// RangeTable - which of a row of granules are in use: ranges that are taken and given back.
//
// Contract: take() finds free granules that follow each other, resize() lets a range end sooner or later where it is,
//   give_back() makes it free. A free range is dirty when somebody has had a part of it since clean() of that part.
// Invariants: (1) each granule is in one range, and free ranges do not touch; (2) take() and give_back() take the same
//   time however many ranges there are: free ranges are in lists by size, eight to a doubling; (3) nothing is
//   allocated: the table lies in memory of its owner, zeroed, of which only ends of ranges are touched.
// Threads: one at a time. Time: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace spinloom {

class RangeTable {
 public:
  static constexpr uint32_t none = UINT32_MAX;
  static constexpr uint32_t granules_max = 1u << 24;
  [[nodiscard]] static constexpr size_t bytes_for(uint32_t granules) { return granules * sizeof(Entry); }

  struct Taken {
    uint32_t first = none;  // none: there is no room
    bool dirty = false;
  };

  constexpr RangeTable() = default;
  RangeTable(void* zeroed, uint32_t granules);

  // `alignment` in granules, a power of two.
  [[nodiscard]] Taken take(uint32_t count, uint32_t alignment = 1);
  // Of the range in use that begins here; 0: none does.
  [[nodiscard]] uint32_t count_of(uint32_t first) const;
  // Whether the range in use that begins here has that many now.
  [[nodiscard]] bool resize(uint32_t first, uint32_t count);
  void give_back(uint32_t first);

  [[nodiscard]] uint32_t used() const { return used_; }
  // About how many of the free ones are dirty.
  [[nodiscard]] uint32_t dirty() const { return dirty_; }
  // work(first, count) for each range in use.
  template <class Work>
  void each_used(Work work) const {
    for (uint32_t first = 0; first < granules_; first += entries_[first].count) {
      if (entries_[first].used != 0) work(first, entries_[first].count);
    }
  }
  // Where work(first, count) says that a dirty free range is clean now, it is.
  template <class Work>
  void clean(Work work) {
    for (const uint32_t head : heads_) {
      for (uint32_t first = head; first != none; first = entries_[first].next) {
        if (entries_[first].dirty != 0 && work(first, entries_[first].count)) entries_[first].dirty = 0;
      }
    }
    dirty_ = 0;
  }

 private:
  struct Entry {
    uint32_t count : 30;  // at the first granule of a range; 0: none begins here
    uint32_t used : 1;
    uint32_t dirty : 1;
    uint32_t begin;  // at the last granule of a range: its first
    uint32_t next;   // of free ranges in the same list
    uint32_t previous;
  };
  static constexpr uint32_t looks_max = 8;  // at ranges that may be a little too short
  static constexpr uint32_t classes = 22 * 8;

  [[nodiscard]] static uint32_t class_of(uint32_t count);
  [[nodiscard]] uint32_t find(uint32_t count) const;
  void set(uint32_t first, uint32_t count, bool used, bool dirty);
  void link(uint32_t first);
  void unlink(uint32_t first);
  void add_free(uint32_t first, uint32_t count, bool dirty);

  Entry* entries_ = nullptr;
  uint32_t granules_ = 0;
  uint32_t used_ = 0;
  uint32_t dirty_ = 0;
  std::array<uint32_t, classes> heads_{};
};

}  // namespace spinloom
