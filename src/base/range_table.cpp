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
uint32_t RangeTable::size_class_of(uint32_t count) {
  if (count < 8) return count;
  const auto exponent = static_cast<uint32_t>(std::bit_width(count)) - 1;
  return (exponent - 2) * 8 + (count >> (exponent - 3) & 7);
}

uint32_t RangeTable::find_free(uint32_t count) const {
  const uint32_t size_class = size_class_of(count);
  uint32_t first = heads_[size_class];
  for (uint32_t tried = 0; tried < search_max && first != none; ++tried, first = entries_[first].next) {
    if (entries_[first].count >= count) return first;
  }
  const auto larger =
      std::find_if(heads_.begin() + size_class + 1, heads_.end(), [](uint32_t head) { return head != none; });
  return larger == heads_.end() ? none : *larger;
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
  uint32_t& head = heads_[size_class_of(entries_[first].count)];
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
    heads_[size_class_of(entry.count)] = entry.next;
  }
  entry.count = 0;
}

void RangeTable::add_free(uint32_t first, uint32_t count, bool dirty) {
  if (count == 0) return;
  set(first, count, false, dirty);
  link(first);
}

RangeTable::Allocation RangeTable::allocate(uint32_t count, uint32_t alignment) {
  if (count == 0 || count > granules_ || alignment > granules_) return {};
  const uint32_t found = find_free(count + alignment - 1);
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
  const uint32_t old_count = count_of(first);
  if (old_count == 0 || count == 0 || (count < old_count && is_marked(first))) return false;
  if (count < old_count) {
    set(first, count, true, false);
    set(first + count, old_count - count, true, false);
    release(first + count);
  } else if (count > old_count) {
    const uint32_t following = first + old_count;
    const uint32_t added = count - old_count;
    if (following >= granules_ || entries_[following].used != 0 || entries_[following].count < added) return false;
    const uint32_t remaining = entries_[following].count - added;
    const bool dirty = entries_[following].dirty != 0;
    unlink(following);
    add_free(following + added, remaining, dirty);
    set(first, count, true, false);
    used_ += added;
    if (dirty) dirty_ -= std::min(dirty_, added);
  }
  return true;
}

RangeTable::Span RangeTable::mark(uint32_t first, uint32_t count, bool pin) {
  Span marked;
  for_each_used([&](uint32_t begin, uint32_t length) {
    if (begin >= first + count || first >= begin + length) return;
    marked = {std::min(marked.first, begin), begin + length - 1};
    entries_[begin].marked = 1;
    if (pin) entries_[begin].pinned = 1;
  });
  return marked;
}

bool RangeTable::any_pinned(uint32_t first, uint32_t count) const {
  bool any = false;
  for_each_used([&](uint32_t begin, uint32_t length) {
    any = any || (begin < first + count && first < begin + length && is_pinned(begin));
  });
  return any;
}

bool RangeTable::any_marked(uint32_t first, uint32_t count) const {
  bool any = false;
  for_each_used([&](uint32_t begin, uint32_t length) {
    any = any || (begin < first + count && first < begin + length && is_marked(begin));
  });
  return any;
}

void RangeTable::release(uint32_t first) {
  uint32_t count = entries_[first].count;
  entries_[first].marked = entries_[first].pinned = 0;
  used_ -= count;
  dirty_ += count;
  entries_[first].count = 0;
  const uint32_t following = first + count;
  if (following < granules_ && entries_[following].used == 0) {
    count += entries_[following].count;
    unlink(following);
  }
  if (first > 0) {
    const uint32_t preceding = entries_[first - 1].begin;
    if (entries_[preceding].used == 0) {
      count += entries_[preceding].count;
      first = preceding;
      unlink(preceding);
    }
  }
  add_free(first, count, true);
}

}  // namespace spinloom
