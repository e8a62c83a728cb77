// Polls - the ballots of a machine's communicators in shared memory, found by their keys.
//
// Contract: the first rank of a communicator opens its ballot; the others join it, if they find it. No rank waits: one
//   that comes before the first rank looks again later. A ballot is marked if any of its ranks opened or joined it with
//   `is_marked`. leave() is the last call of a rank on a ballot.
// Invariants: (1) an Entry's state holds the ballot's generation, how many ranks have come and how many have
//   left; it is changed by compare-and-swap only, so that a rank comes to the very ballot whose key it has read. (2)
//   One rank opens a key, once, so that a key has no two ballots. (3) A ballot is free again when all that have come
//   have left; a rank that comes later does not find it, and never sees all ranks of it. (4) A rank's count is written
//   before it comes: a rank that has seen all come reads all counts. (5) A killed rank never gives back what it took.
// Threads: the caller's lock. Time: none.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "mpi/entry/agreement.hpp"
#include "mpi/entry/lineage.hpp"

namespace spinloom::mpi {

class Polls {
 public:
  static constexpr uint32_t most = 1'024;  // communicators at a time

  struct alignas(32) Entry {
    std::atomic<uint64_t> state, low, high;
  };
  // An empty table is all zeros, as the kernel gives its memory.
  struct Table {
    std::atomic<uint64_t> opened;  // the number of ballots opened so far
    alignas(64) std::array<Entry, most> entries;
    alignas(64) std::array<Ballot, most> ballots;
  };
  using Counts = std::array<std::atomic<uint64_t>, most>;  // one rank's counts of calls, by ballot

  Polls(Table& table, Counts& own_counts) : table_(&table), own_counts_(&own_counts) {}

  // Both return the number of a ballot. open() returns nothing if the table is full; join() if the ballot is not open
  // yet, is over, or was never made. `calls`: how many calls this rank has begun.
  [[nodiscard]] std::optional<uint32_t> open(Key key, bool is_marked, uint64_t calls) const;
  // `seen`: a variable of the caller for this key, 0 at first. While no ballot was opened since the last look, join()
  // is one load and returns nothing.
  [[nodiscard]] std::optional<uint32_t> join(Key key, bool is_marked, uint64_t calls, uint64_t& seen) const;
  struct Turnout {
    uint32_t ranks = 0;
    bool is_marked = false;
    uint32_t generation = 0;  // the number of ballots that have had this number, this one included
  };
  [[nodiscard]] Turnout turnout(uint32_t number) const;
  void leave(uint32_t number) const;

  [[nodiscard]] Ballot& ballot(uint32_t number) const { return table_->ballots[number]; }
  [[nodiscard]] std::atomic<uint64_t>& count(uint32_t number) const { return (*own_counts_)[number]; }

 private:
  Table* table_;
  Counts* own_counts_;
};

}  // namespace spinloom::mpi
