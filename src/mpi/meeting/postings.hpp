// Postings - tells the other ranks about a rank's memory in windows, in shared memory of that rank.
//
// Contract: post() follows a window's creation, remove() precedes its end; both are the owner's. Any rank may call
//   find(), which never waits: it returns nothing before the owner has posted, and the rank looks again later.
// Invariants: (1) a posting is read whole or not at all: its key is taken away before anything else of it changes, and
//   read again after the rest; (2) a key is posted once. Where the owner has no room left, others never find it.
// Threads: the owner's lock for post() and remove(), none for find(). Time: none.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "mpi/entry/lineage.hpp"
#include "mpi/meeting/mappings.hpp"

namespace spinloom::mpi {

// A rank's part of a window.
struct PostedMemory {
  uint64_t base = 0;
  int64_t bytes = 0;
  int64_t unit = 1;
  enum class Location : uint64_t { elsewhere, in_heap, in_mpis_memory } location = Location::elsewhere;
  uint64_t posts = 0;  // address of its Posts; 0: it has none
  SharedPlace place;  // its place in a file; none: it is in the heap, or elsewhere
};

class Postings {
 public:
  static constexpr uint32_t most = 1'024;  // windows of a rank at a time

  struct alignas(64) Entry {
    std::atomic<uint64_t> low;  // half of the key; 0: the entry is free
    std::atomic<uint64_t> high, base, bytes, unit, location, posts, device, inode, offset;
  };
  // An empty table is all zeros, as the kernel gives its memory.
  struct Table {
    std::atomic<uint64_t> posted;  // the number of postings made so far
    std::array<Entry, most> entries;
  };

  explicit Postings(Table& table) : table_(&table) {}

  void post(Key key, const PostedMemory& memory) const;
  void remove(Key key) const;
  // `seen`: a variable of the caller for this key and this owner, 0 at first. While nothing was posted since the last
  // look, find() is one load and returns nothing, even if it has found the posting before.
  [[nodiscard]] std::optional<PostedMemory> find(Key key, uint64_t& seen) const;

 private:
  Table* table_;
};

}  // namespace spinloom::mpi
