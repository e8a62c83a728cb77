// DirectMemory - what a process publishes in its segment for peers that reach into its memory without its help.
//
// Contract: a gate (direct_gate.hpp) stands before each published portal. A peer reads a PublishedPortal, but for its
//   number, and uses the memory of its entries, only inside of that gate; the owner writes the record only while the
//   gate is shut and nobody is inside. What an entry's counter has to count, a peer adds to the entry's word of
//   `counts`, and then says so in `counted`, both inside of the gate.
// Invariants: (1) `portals_used` never gets smaller; the gate of a record that is not in use is shut; (2) the owner
//   takes what a peer has written here for numbers: they may be wrong, and change nothing but its counters.
// Threads: one owner, any peers. Time: none.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "live/node/direct_gate.hpp"

namespace spinloom::live {

// nic::PlainEntry, with what peers need.
struct PublishedEntry {
  static constexpr uint32_t op_put = 1, op_get = 2, ack_disable = 4, counts = 8, counts_bytes = 16;
  uint64_t start = 0;
  uint64_t length = 0;
  uint64_t match_bits = 0;
  uint64_t ignore_bits = 0;
  uint32_t match_rank = 0;
  uint32_t user = 0;
  uint32_t options = 0;
  uint32_t unused = 0;
};

struct PublishedPortal {
  static constexpr uint32_t entries_max = 8;
  SharedWord gate;
  SharedWord portal;  // the portal table index
  uint64_t heap_changes = 0;  // DirectMemory::heap_changes, when this was published
  uint32_t heap_is_shared = 0;  // peers see the heap as its process does, unless 0
  uint32_t entries_count = 0;
  std::array<PublishedEntry, entries_max> entries;
};

struct DirectMemory {
  static constexpr uint32_t portals_max = 8;
  SharedWord portals_used;
  std::atomic<uint64_t> heap_changes;  // grows when the process maps other memory over its heap
  alignas(64) SharedWord waits;  // a caller of the process waits for packets, unless 0
  SharedWord helper_counts;  // peers that have counted wake the helper thread, unless 0
  alignas(64) SharedWord counted;  // there may be something in `counts`, unless 0
  std::array<std::array<SharedWord, PublishedPortal::entries_max>, portals_max> counts;
  std::array<PublishedPortal, portals_max> portals;
};

}  // namespace spinloom::live
