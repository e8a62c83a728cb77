// Algorithms - those of collective operations, each as what one rank does.
//
// Contract: an algorithm adds the Rounds of `rank` to what it is given. It reads of a Collective what it needs: `sends`
//   and `receives` are one Part for all or one for each peer; of a broadcast, a reduction or a scan all data are one
//   Part, of the others a Part is the block of a rank. Those of halving_algorithms.cpp whose names have no fold need as
//   many ranks as a power of two.
// Invariants: (1) over all ranks each Leg has one partner of the same bytes, the n-th from one rank to another.
// Threads: pure. Time: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "goal/rounds.hpp"

namespace spinloom::goal {

struct Collective {
  uint32_t rank = 0;
  uint32_t size = 1;
  uint32_t root = 0;
  bool in_place = false;
  bool is_grid = false;  // of neighbourhood calls: sources and destinations go in pairs, one a dimension
  uint32_t radix = 2;  // of a dissemination: ranks that a round adds to each one
  uint64_t segment_bytes = UINT64_MAX;  // of chains and binary trees
  std::vector<Part> sends = {};
  std::vector<Part> receives = {};
  std::vector<int32_t> sources = {};  // -1: nobody
  std::vector<int32_t> destinations = {};
};

namespace algorithms {

using Make = void(const Collective&, Rounds&);

Make dissemination, linear_barrier;
Make binomial_bcast, scatter_ring_bcast, linear_bcast, chain_bcast, binary_bcast, double_tree_first, double_tree_second;
Make binomial_reduce, linear_reduce, chain_reduce, binary_reduce;
Make binomial_gather, linear_gather, binomial_scatter, linear_scatter;
Make ring_allgather, bruck_allgather, linear_allgather, recursive_doubling_allgather;
Make pairwise_alltoall, bruck_alltoall, linear_alltoall;
Make recursive_doubling_allreduce, ring_allreduce, tree_allreduce, rabenseifner_allreduce;
Make pairwise_reduce_scatter, recursive_halving_reduce_scatter;
Make binomial_scan, linear_scan;
Make direct_neighbors;

// The block of a rank: regular calls have one for all.
inline Part block(const std::vector<Part>& parts, uint32_t rank) {
  if (parts.empty()) return {};
  return parts.size() == 1 ? parts[0] : parts[rank];
}
inline Part times(const Part& part, uint64_t factor) {
  return {part.bytes * factor, part.count * static_cast<int64_t>(factor), part.type};
}
inline Part packed(uint64_t bytes) { return {.bytes = bytes, .count = 0, .type = untyped}; }
// Of `bytes`, the share of a rank: shares differ by a byte at most.
inline uint64_t share_begin(uint64_t bytes, uint64_t ranks, uint64_t rank) {
  return bytes / ranks * rank + bytes % ranks * rank / ranks;
}
inline Part share(uint64_t bytes, uint32_t ranks, uint32_t rank) {
  return packed(share_begin(bytes, ranks, rank + 1) - share_begin(bytes, ranks, rank));
}

// A rank's place in a ring, and in a tree whose root is the call's.
inline uint32_t after(const Collective& call, uint64_t distance) {
  return static_cast<uint32_t>((call.rank + distance) % call.size);
}
inline uint32_t before(const Collective& call, uint64_t distance) {
  return static_cast<uint32_t>((call.rank + call.size - distance % call.size) % call.size);
}
inline uint32_t place_of(const Collective& call) { return before(call, call.root); }
inline uint32_t rank_at(const Collective& call, uint32_t place) {
  return static_cast<uint32_t>((uint64_t{place} + call.root) % call.size);
}

// The binomial tree in which the children of a place are so many places further on: powers of two below its own lowest
// bit. A subtree holds the places from its root on.
[[nodiscard]] uint32_t binomial_reach(uint32_t size, uint32_t place);
[[nodiscard]] inline uint32_t binomial_subtree(uint32_t size, uint32_t place) {
  return std::min(binomial_reach(size, place), size - place);
}

}  // namespace algorithms
}  // namespace spinloom::goal
