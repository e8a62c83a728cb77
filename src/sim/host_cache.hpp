// HostCache - the last-level cache of the modelled host: which touched lines cost a memory access.
//
// Contract: set-associative, write-allocate, write-back, least recently used; starts cold. touch() a range
//   in the order in which the host's copy loop does; fetches() and writebacks() are the line transfers
//   between cache and memory so far, flush() adds the lines still dirty.
// Invariants: (1) writebacks never exceed fetches of written lines; (2) addresses count, bytes do not.
// Threads: one owner. Time: none; the caller prices the transfers.
#pragma once

#include <cstdint>
#include <vector>

namespace spinloom::sim {

class HostCache {
 public:
  HostCache(int64_t bytes, int64_t ways, int64_t line_bytes);

  void touch(uint64_t address, uint64_t length, bool write);
  void flush();
  [[nodiscard]] uint64_t fetches() const { return fetches_; }
  [[nodiscard]] uint64_t writebacks() const { return writebacks_; }

 private:
  struct Line {
    uint64_t tag = UINT64_MAX;
    uint64_t used = 0;
    bool dirty = false;
  };
  void touch_line(uint64_t line, bool write);

  uint64_t line_shift_;
  uint64_t sets_;
  uint64_t ways_;
  std::vector<Line> lines_;
  uint64_t clock_ = 0;
  uint64_t fetches_ = 0;
  uint64_t writebacks_ = 0;
  uint64_t last_line_ = UINT64_MAX;  // repeated touches of one line are the common case
  Line* last_ = nullptr;
};

}  // namespace spinloom::sim
