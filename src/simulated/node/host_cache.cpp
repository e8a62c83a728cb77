#include "simulated/node/host_cache.hpp"

#include "base/assert.hpp"

namespace spinloom::simulated {

HostCache::HostCache(int64_t bytes, int64_t ways, int64_t line_bytes)
    : sets_(static_cast<uint64_t>(bytes / line_bytes / ways)),
      ways_(static_cast<uint64_t>(ways)),
      lines_(sets_ * ways_) {
  SPL_ASSERT(sets_ > 0, bytes, " B of ", ways, " ways of ", line_bytes, " B");
}

bool HostCache::access(uint64_t line, bool is_write) {
  ++accesses_;
  Line* const set = &lines_[(line % sets_) * ways_];
  Line* victim = set;
  for (uint64_t way = 0; way < ways_; ++way) {
    Line& candidate = set[way];
    if (candidate.tag == line) {
      candidate.last_use = accesses_;
      candidate.dirty = candidate.dirty || is_write;
      return true;
    }
    if (candidate.last_use < victim->last_use) victim = &candidate;
  }
  if (victim->dirty) ++writebacks_;
  *victim = {line, accesses_, is_write};
  return false;
}

bool HostCache::holds(uint64_t line) const {
  const Line* const set = &lines_[(line % sets_) * ways_];
  for (uint64_t way = 0; way < ways_; ++way) {
    if (set[way].tag == line) return true;
  }
  return false;
}

void HostCache::flush() {
  for (Line& line : lines_) {
    if (line.dirty) ++writebacks_;
    line.dirty = false;
  }
}

}  // namespace spinloom::simulated
