// QueueIndex - how far the NIC has written an event queue, and how far its host has read it: what both look at.
//
// Contract: the NIC counts an event before it posts it, the host one after it has taken it. A queue of n slots holds the
//   newest n events: whoever takes one finds by the two counts how many of the oldest have been overwritten.
// Threads: the NIC writes `posted` and adds to `added`, the host writes `taken` and ends `added`. Time: none.
#pragma once

#include <atomic>
#include <cstdint>

namespace spinloom::nic {

struct QueueIndex {
  std::atomic<uint64_t> posted{0};
  std::atomic<uint64_t> taken{0};
  // Slots beyond the queue's own, until it is empty: under flow control nothing of what the host asked for itself is
  // overwritten, for no message can be refused instead.
  std::atomic<uint64_t> added{0};

  [[nodiscard]] uint64_t waiting() const {
    const uint64_t read = taken.load(std::memory_order_acquire);
    return posted.load(std::memory_order_acquire) - read;
  }
};

}  // namespace spinloom::nic
