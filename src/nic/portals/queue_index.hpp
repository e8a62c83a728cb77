// QueueIndex - counts of the events that the NIC has written to a queue and its host has read; shared by both.
//
// Contract: the NIC counts an event before it posts it, the host after it has taken it. A queue of n slots holds the
//   newest n + `added` events. A reader finds by the three counts how many of the oldest events have been overwritten.
// Threads: the NIC writes `posted` and adds to `added`, the host writes `taken`, and sets `added` to 0 when the queue
//   is empty. Time: none.
#pragma once

#include <atomic>
#include <cstdint>

namespace spinloom::nic {

struct QueueIndex {
  std::atomic<uint64_t> posted{0};
  std::atomic<uint64_t> taken{0};
  // Slots beyond the queue's own, until the queue is empty. Under flow control a full queue refuses messages. Events
  // that the host asked for come all the same, and these slots keep them from overwriting others.
  std::atomic<uint64_t> added{0};

  [[nodiscard]] uint64_t waiting() const {
    const uint64_t read = taken.load(std::memory_order_acquire);
    return posted.load(std::memory_order_acquire) - read;
  }
};

}  // namespace spinloom::nic
