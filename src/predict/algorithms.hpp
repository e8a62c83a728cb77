// Algorithms - those of collective operations, each as what one rank does. For collectives.cpp only.
//
// Threads: pure. Time: none.
#pragma once

#include "predict/collectives.hpp"

namespace spinloom::predict::algorithms {

using Make = void(const CollectiveCall&, Rounds&);

Make dissemination_barrier, linear_barrier;
Make binomial_bcast, scatter_ring_bcast, linear_bcast;
Make binomial_reduce, linear_reduce;
Make binomial_gather, linear_gather, binomial_scatter, linear_scatter;
Make ring_allgather, bruck_allgather, linear_allgather;
Make pairwise_alltoall, bruck_alltoall, linear_alltoall;
Make recursive_doubling_allreduce, ring_allreduce, tree_allreduce;
Make pairwise_reduce_scatter;
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
inline Part packed(uint64_t bytes) { return {.bytes = bytes, .count = 0, .type = trace::none}; }
// Of `bytes`, the share of a rank: shares differ by a byte at most.
inline uint64_t share_begin(uint64_t bytes, uint64_t ranks, uint64_t rank) {
  return bytes / ranks * rank + bytes % ranks * rank / ranks;
}
inline Part share(uint64_t bytes, uint32_t ranks, uint32_t rank) {
  return packed(share_begin(bytes, ranks, rank + 1) - share_begin(bytes, ranks, rank));
}

// A rank's place in a ring, and in a tree whose root is the call's.
inline uint32_t after(const CollectiveCall& call, uint64_t distance) {
  return static_cast<uint32_t>((call.rank + distance) % call.size);
}
inline uint32_t before(const CollectiveCall& call, uint64_t distance) {
  return static_cast<uint32_t>((call.rank + call.size - distance % call.size) % call.size);
}

}  // namespace spinloom::predict::algorithms
