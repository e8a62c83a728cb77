// HeapView - the heap of a peer process, mapped into this process for reading, or for writing, too.
//
// Contract: map() opens the file of the peer's SharedHeap by the peer's descriptor of it (/proc/PID/fd), and maps it.
//   at() gives the address in this process for bytes at an address of the peer. of_this_process() maps nothing.
// Invariants: (1) reading is safe whatever the peer does later: map() takes only memory that is sealed against
//   shrinking, and a hole reads as zeros; (2) nothing changes at the peer, unless the view is writable and is written
//   to; (3) a mapping stays when its peer ends; (4) where the number of addresses is limited (ulimit -v), a mapping
//   that would leave less than a quarter of them is refused. So is a heap longer than SharedHeap::region_bytes_max.
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

  [[nodiscard]] static Result<HeapView> map(int64_t pid, const SharedHeap::Location& place, bool writable = false);
  // Returns a view of this process's own heap at its own addresses.
  [[nodiscard]] static HeapView of_this_process(const SharedHeap::Location& place) {
    HeapView view;
    view.local_base_ = reinterpret_cast<const uint8_t*>(place.base);
    view.peer_base_ = place.base;
    view.bytes_ = place.bytes;
    view.is_own_ = true;
    return view;
  }
  // Returns the address in this process; null unless all of these bytes lie in the heap.
  [[nodiscard]] const uint8_t* at(uint64_t address, uint64_t length) const {
    const uint64_t offset = address - peer_base_;
    return offset < bytes_ && length <= bytes_ - offset ? local_base_ + offset : nullptr;
  }

  // Does the same as at(), for a view that was mapped as writable or is this process's own heap.
  [[nodiscard]] uint8_t* writable_at(uint64_t address, uint64_t length) const {
    return const_cast<uint8_t*>(at(address, length));
  }

 private:
  const uint8_t* local_base_ = nullptr;
  uint64_t peer_base_ = 0;  // the peer's address of the bytes at local_base_
  uint64_t bytes_ = 0;
  bool is_own_ = false;  // the view shows this process's own heap, and has mapped nothing
};

}  // namespace spinloom::peer
