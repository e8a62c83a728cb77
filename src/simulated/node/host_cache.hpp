// HostCache - one level of the modelled host's caches: the lines that it holds.
//
// Contract: set-associative, write-allocate, write-back, least recently used; starts cold. access() returns whether
//   the line was there, and brings it in if not. writebacks() counts dirty lines that were evicted; flush() adds the
//   dirty lines still there.
// Invariants: (1) there are never more writebacks than writes; (2) only the numbers of lines are kept, no bytes.
// Threads: one owner. Time: none; the caller prices the transfers.
#pragma once

#include <cstdint>
#include <vector>

namespace spinloom::simulated {

class HostCache {
 public:
  HostCache(int64_t bytes, int64_t ways, int64_t line_bytes);

  bool access(uint64_t line, bool is_write);
  [[nodiscard]] bool holds(uint64_t line) const;
  void flush();
  [[nodiscard]] uint64_t writebacks() const { return writebacks_; }

 private:
  struct Line {
    uint64_t tag = UINT64_MAX;
    uint64_t last_use = 0;  // the number of the access
    bool dirty = false;
  };

  uint64_t sets_;
  uint64_t ways_;
  std::vector<Line> lines_;
  uint64_t accesses_ = 0;
  uint64_t writebacks_ = 0;
};

}  // namespace spinloom::simulated
