#include "sim/host_cache.hpp"

#include <bit>

#include "base/assert.hpp"

namespace spinloom::sim {

HostCache::HostCache(int64_t bytes, int64_t ways, int64_t line_bytes)
    : line_shift_(static_cast<uint64_t>(std::countr_zero(static_cast<uint64_t>(line_bytes)))),
      sets_(static_cast<uint64_t>(bytes / line_bytes / ways)),
      ways_(static_cast<uint64_t>(ways)),
      lines_(sets_ * ways_) {
  SPL_ASSERT(sets_ > 0, bytes, " B of ", ways, " ways of ", line_bytes, " B");
}

void HostCache::touch(uint64_t address, uint64_t length, bool write) {
  if (length == 0) return;
  const uint64_t last = (address + length - 1) >> line_shift_;
  for (uint64_t line = address >> line_shift_; line <= last; ++line) touch_line(line, write);
}

void HostCache::touch_line(uint64_t line, bool write) {
  ++clock_;
  if (line == last_line_) {
    last_->used = clock_;
    last_->dirty = last_->dirty || write;
    return;
  }
  Line* const set = &lines_[(line % sets_) * ways_];
  Line* victim = set;
  for (uint64_t way = 0; way < ways_; ++way) {
    Line& candidate = set[way];
    if (candidate.tag == line) {
      candidate.used = clock_;
      candidate.dirty = candidate.dirty || write;
      last_line_ = line;
      last_ = &candidate;
      return;
    }
    if (candidate.used < victim->used) victim = &candidate;
  }
  if (victim->dirty) ++writebacks_;
  ++fetches_;
  *victim = {line, clock_, write};
  last_line_ = line;
  last_ = victim;
}

void HostCache::flush() {
  for (Line& line : lines_) {
    if (line.dirty) ++writebacks_;
    line.dirty = false;
  }
}

}  // namespace spinloom::sim
