// RangeTable - an allocator of ranges in a row of granules (equal pieces of memory): it knows which are in use.
//
// Contract: allocate() finds free granules that follow each other and returns their range; it may miss a range that is
//   hardly long enough. resize() moves the end of a range in use, without moving its beginning. release() frees a
//   range. A free range is dirty when any part of it was in use and has not been cleaned by clean() since. A range in
//   use may be marked: it keeps the mark until it is free.
// Invariants: (1) each granule is in exactly one range, and no two free ranges touch; (2) the time of allocate() and
//   release() does not grow with the number of ranges: free ranges are in lists by size, one for each length below 8
//   and eight for each doubling above; (3) nothing is allocated: the table lies in zeroed memory that the owner
//   provides, and only the entries at the ends of ranges are touched.
// Threads: one at a time. Time: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace spinloom {

class RangeTable {
 public:
  static constexpr uint32_t none = UINT32_MAX;
  // For its alignment, allocate() may look for a range almost twice as long; `size_classes` has lists up to there.
  static constexpr uint32_t granules_max = 1u << 23;
  [[nodiscard]] static constexpr size_t bytes_for(uint32_t granules) { return granules * sizeof(Entry); }

  struct Allocation {
    uint32_t first = none;  // none: no free range was found
    bool dirty = false;
  };

  constexpr RangeTable() = default;
  RangeTable(void* zeroed, uint32_t granules);

  // `alignment` is in granules and a power of two.
  [[nodiscard]] Allocation allocate(uint32_t count, uint32_t alignment = 1);
  // Returns the granules of the range in use that begins at `first`; 0 if none begins there.
  [[nodiscard]] uint32_t count_of(uint32_t first) const;
  // Makes the range in use that begins at `first` `count` granules long. False: there is no such range, there is no
  // room behind it, `count` is 0, or a marked range would become shorter.
  [[nodiscard]] bool resize(uint32_t first, uint32_t count);
  void release(uint32_t first);

  // mark() marks the ranges in use that have any of these granules, and pins them as well if `pin` is true; a pin has
  // no effect on the table itself. It returns the span from the first granule of the first range that it marked to the
  // last granule of the last one; `first` is none if it marked none. mark(), any_marked() and any_pinned() take longer
  // with more ranges.
  struct Span {
    uint32_t first = none;
    uint32_t last = 0;
  };
  Span mark(uint32_t first, uint32_t count, bool pin = false);
  [[nodiscard]] bool any_marked(uint32_t first, uint32_t count) const;
  [[nodiscard]] bool is_marked(uint32_t first) const { return entries_[first].marked != 0; }
  [[nodiscard]] bool is_pinned(uint32_t first) const { return entries_[first].pinned != 0; }
  [[nodiscard]] bool any_pinned(uint32_t first, uint32_t count) const;

  [[nodiscard]] uint32_t used_granules() const { return used_; }
  // The number of dirty free granules, roughly.
  [[nodiscard]] uint32_t dirty_granules() const { return dirty_; }
  // Calls work(first, count) for each range in use.
  template <class Work>
  void for_each_used(Work work) const {
    for (uint32_t first = 0; first < granules_; first += entries_[first].count) {
      if (entries_[first].used != 0) work(first, entries_[first].count);
    }
  }
  // Calls work(first, count) for each dirty free range; where work returns true, the range counts as clean. dirty() is
  // 0 afterwards in any case.
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
    uint32_t count : 28;  // length of the range whose first granule this is; 0 elsewhere
    uint32_t used : 1;
    uint32_t dirty : 1;
    uint32_t marked : 1;
    uint32_t pinned : 1;
    uint32_t begin;  // the first granule of a range, in the entry of its last granule
    uint32_t next;   // the next free range of the same list
    uint32_t previous;
  };
  static constexpr uint32_t search_max = 8;  // ranges that find_free() tries in a list where some are too short
  static constexpr uint32_t size_classes = 22 * 8;

  [[nodiscard]] static uint32_t size_class_of(uint32_t count);
  [[nodiscard]] uint32_t find_free(uint32_t count) const;
  void set(uint32_t first, uint32_t count, bool used, bool dirty);
  void link(uint32_t first);
  void unlink(uint32_t first);
  void add_free(uint32_t first, uint32_t count, bool dirty);

  Entry* entries_ = nullptr;
  uint32_t granules_ = 0;
  uint32_t used_ = 0;
  uint32_t dirty_ = 0;
  std::array<uint32_t, size_classes> heads_{};
};

}  // namespace spinloom
