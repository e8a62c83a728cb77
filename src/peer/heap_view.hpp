// HeapView - the heap of a peer process, mapped to be read.
//
// Contract: map() opens the file that the peer's SharedHeap is in, as Segment::attach() does; at() is where bytes of
//   the peer's are here.
// Invariants: (1) whatever the peer does later, reading is safe: map() takes only memory whose size is sealed; a hole
//   reads as zeros; (2) nothing at the peer changes; (3) a mapping outlives its peer; (4) under a limit of addresses
//   (ulimit -v), no mapping leaves less than a quarter of them.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "base/shared_heap.hpp"

namespace spinloom::peer {

class HeapView {
 public:
  HeapView() = default;
  HeapView(HeapView&& other) noexcept;
  HeapView& operator=(HeapView&& other) noexcept;
  ~HeapView();

  [[nodiscard]] static Result<HeapView> map(int64_t pid, const SharedHeap::Place& place);
  // Null: not all of these bytes are the heap's.
  [[nodiscard]] const uint8_t* at(uint64_t address, uint64_t length) const {
    const uint64_t offset = address - theirs_;
    return offset < bytes_ && length <= bytes_ - offset ? here_ + offset : nullptr;
  }

 private:
  const uint8_t* here_ = nullptr;
  uint64_t theirs_ = 0;  // the peer's address of what is here_
  uint64_t bytes_ = 0;
};

}  // namespace spinloom::peer
