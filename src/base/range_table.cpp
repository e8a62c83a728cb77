#include "base/range_table.hpp"

#include <algorithm>
#include <bit>

namespace spinloom {

RangeTable::RangeTable(void* zeroed, uint32_t granules) : entries_(static_cast<Entry*>(zeroed)), granules_(granules) {
  heads_.fill(none);
  add_free(0, granules, false);
}

// Returns the number of the list that holds free ranges of `count` granules. Lists are in rising order: every range of
// a list is longer than every range of the lists before.
uint32_t RangeTable::class_of(uint32_t count) {
  if (count < 8) return count;
  const auto exponent = static_cast<uint32_t>(std::bit_width(count)) - 1;
  return (exponent - 2) * 8 + (count >> (exponent - 3) & 7);
}

uint32_t RangeTable::find(uint32_t count) const {
  const uint32_t own = class_of(count);
  uint32_t first = heads_[own];
  for (uint32_t looks = 0; looks < looks_max && first != none; ++looks, first = entries_[first].next) {
    if (entries_[first].count >= count) return first;
  }
  const auto above = std::find_if(heads_.begin() + own + 1, heads_.end(), [](uint32_t head) { return head != none; });
  return above == heads_.end() ? none : *above;
}

void RangeTable::set(uint32_t first, uint32_t count, bool used, bool dirty) {
  Entry& entry = entries_[first];
  entry.count = count & (granules_max * 2 - 1);
  entry.used = used ? 1 : 0;
  entry.dirty = dirty ? 1 : 0;
  if (!used) entry.marked = entry.pinned = 0;
  entries_[first + count - 1].begin = first;
}

void RangeTable::link(uint32_t first) {
  uint32_t& head = heads_[class_of(entries_[first].count)];
  entries_[first].next = head;
  entries_[first].previous = none;
  if (head != none) entries_[head].previous = first;
  head = first;
}

// Takes a free range out of its list; afterwards no range begins at `first`.
void RangeTable::unlink(uint32_t first) {
  Entry& entry = entries_[first];
  if (entry.next != none) entries_[entry.next].previous = entry.previous;
  if (entry.previous != none) {
    entries_[entry.previous].next = entry.next;
  } else {
    heads_[class_of(entry.count)] = entry.next;
  }
  entry.count = 0;
}

void RangeTable::add_free(uint32_t first, uint32_t count, bool dirty) {
  if (count == 0) return;
  set(first, count, false, dirty);
  link(first);
}

RangeTable::Taken RangeTable::take(uint32_t count, uint32_t alignment) {
  if (count == 0 || count > granules_ || alignment > granules_) return {};
  const uint32_t found = find(count + alignment - 1);
  if (found == none) return {};
  const uint32_t end = found + entries_[found].count;
  const bool dirty = entries_[found].dirty != 0;
  unlink(found);
  const uint32_t first = (found + alignment - 1) & ~(alignment - 1);
  add_free(found, first - found, dirty);
  add_free(first + count, end - first - count, dirty);
  set(first, count, true, false);
  used_ += count;
  if (dirty) dirty_ -= std::min(dirty_, count);
  return {first, dirty};
}

uint32_t RangeTable::count_of(uint32_t first) const {
  return first < granules_ && entries_[first].used != 0 ? entries_[first].count : 0;
}

bool RangeTable::resize(uint32_t first, uint32_t count) {
  const uint32_t had = count_of(first);
  if (had == 0 || count == 0 || (count < had && is_marked(first))) return false;
  if (count < had) {
    set(first, count, true, false);
    set(first + count, had - count, true, false);
    give_back(first + count);
  } else if (count > had) {
    const uint32_t behind = first + had;
    const uint32_t more = count - had;
    if (behind >= granules_ || entries_[behind].used != 0 || entries_[behind].count < more) return false;
    const uint32_t left = entries_[behind].count - more;
    const bool dirty = entries_[behind].dirty != 0;
    unlink(behind);
    add_free(behind + more, left, dirty);
    set(first, count, true, false);
    used_ += more;
    if (dirty) dirty_ -= std::min(dirty_, more);
  }
  return true;
}

RangeTable::Span RangeTable::mark(uint32_t first, uint32_t count, bool pin) {
  Span marked;
  each_used([&](uint32_t begin, uint32_t length) {
    if (begin >= first + count || first >= begin + length) return;
    marked = {std::min(marked.first, begin), begin + length - 1};
    entries_[begin].marked = 1;
    if (pin) entries_[begin].pinned = 1;
  });
  return marked;
}

bool RangeTable::any_pinned(uint32_t first, uint32_t count) const {
  bool any = false;
  each_used([&](uint32_t begin, uint32_t length) {
    any = any || (begin < first + count && first < begin + length && is_pinned(begin));
  });
  return any;
}

bool RangeTable::any_marked(uint32_t first, uint32_t count) const {
  bool any = false;
  each_used([&](uint32_t begin, uint32_t length) {
    any = any || (begin < first + count && first < begin + length && is_marked(begin));
  });
  return any;
}

void RangeTable::give_back(uint32_t first) {
  uint32_t count = entries_[first].count;
  entries_[first].marked = entries_[first].pinned = 0;
  used_ -= count;
  dirty_ += count;
  entries_[first].count = 0;
  const uint32_t behind = first + count;
  if (behind < granules_ && entries_[behind].used == 0) {
    count += entries_[behind].count;
    unlink(behind);
  }
  if (first > 0) {
    const uint32_t before = entries_[first - 1].begin;
    if (entries_[before].used == 0) {
      count += entries_[before].count;
      first = before;
      unlink(before);
    }
  }
  add_free(first, count, true);
}

}  // namespace spinloom
