// Algorithms - the algorithms of collective operations, each as the Rounds of one rank.
//
// Contract: an algorithm adds the Rounds of rank `rank` to the Rounds that it is given. `sends` and `receives` have one
//   Part for all peers or one Part for each. The Part of a broadcast, a reduction or a scan is all data; in other calls
//   a Part is the block of a rank. Blocks for which one Part stands follow each other in their area from 0 on; those of
//   a reduce-scatter always do. `in_place`: the data to send lie where MPI has them in a call in place, in `receives`
//   (for reductions `sends` has the same place). A call that receives into Area::receive says places; Rounds of other
//   calls serve to compute times only.
// Invariants: (1) over all ranks each Leg has one partner of the same bytes, the n-th from one rank to another; (2)
//   where places are said, Rounds that move their bytes do the operation for any number of ranks, and what is sent
//   stays as it is;
//   (3) prices of a call do not depend on whether places are said, but for copies of a call in place and of
//     bruck_alltoall.
// Threads: pure. Time: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "portals/collective/rounds.hpp"

namespace spinloom::collective {

struct Collective {
  uint32_t rank = 0;
  uint32_t size = 1;
  uint32_t root = 0;
  bool in_place = false;  // the meaning of MPI_IN_PLACE
  bool is_grid = false;  // neighbourhood calls: sources and destinations go in pairs, a pair for each dimension
  uint32_t radix = 2;  // a dissemination's round multiplies the number of ranks of which a rank has heard by this
  // Chains, binary and double trees cut messages so; reductions round it to whole elements.
  uint64_t segment_bytes = UINT64_MAX;
  uint64_t element_bytes = 1;  // shares have whole elements
  std::vector<Part> sends = {};
  std::vector<Part> receives = {};
  std::vector<int32_t> sources = {};  // -1: nobody
  std::vector<int32_t> destinations = {};
};

namespace algorithms {

using MakeRounds = void(const Collective&, Rounds&);

MakeRounds dissemination, linear_barrier;
MakeRounds binomial_bcast, scatter_ring_bcast, linear_bcast, chain_bcast, binary_bcast, double_tree_bcast;
MakeRounds double_tree_first, double_tree_second;  // one of the two trees by itself, with its half of the segments
MakeRounds binomial_reduce, linear_reduce, chain_reduce, binary_reduce;
MakeRounds binomial_gather, linear_gather, binomial_scatter, linear_scatter;
MakeRounds ring_allgather, bruck_allgather, linear_allgather, recursive_doubling_allgather;
MakeRounds pairwise_alltoall, bruck_alltoall, linear_alltoall;
MakeRounds recursive_doubling_allreduce, ring_allreduce, tree_allreduce, rabenseifner_allreduce;
MakeRounds chain_allreduce, binary_allreduce, double_tree_allreduce;
MakeRounds pairwise_reduce_scatter, recursive_halving_reduce_scatter;
MakeRounds binomial_scan, linear_scan, binomial_exscan, linear_exscan;
// The `v` forms skip empty messages; the others send them.
MakeRounds neighbor_allgather, neighbor_allgatherv, neighbor_alltoall, neighbor_alltoallv;

// Returns the block of a rank. If there is one Part for all ranks, their blocks follow each other from it on.
inline Part block(const std::vector<Part>& parts, uint32_t rank) {
  if (parts.empty()) return {};
  if (parts.size() > 1) return parts[rank];
  Part part = parts[0];
  part.place.at += part.bytes * rank;
  return part;
}
// All data of a call.
inline Part data(const std::vector<Part>& parts) { return block(parts, 0); }
inline Part times(const Part& part, uint64_t factor) {
  return {part.bytes * factor, part.count * static_cast<int64_t>(factor), part.type, part.place};
}
// The root of a broadcast names its data as what it sends, the others as what they receive.
inline Part broadcast_data(const Collective& call) { return data(call.rank == call.root ? call.sends : call.receives); }
// Returns `blocks` blocks of ranks from `part` on; the block of the first rank follows that of the last rank.
inline Part wrapped_blocks(const Part& part, uint64_t blocks, uint32_t ranks) {
  Part result = times(part, blocks);
  result.place.wrap = part.bytes * ranks;
  return result;
}
inline Part packed(uint64_t bytes, Place place = {}) { return {bytes, 0, untyped, place}; }
// Returns `part` at another place, where its bytes have the same layout.
inline Part at_place(Part part, Place place) {
  part.place = place;
  return part;
}
// Returns one block of the algorithm's own memory, from byte `at` on.
inline Part work(uint64_t bytes, uint64_t at) { return packed(bytes, {.at = at, .area = Area::work}); }
// Returns `bytes` bytes of a part in one block, from its byte `begin` on.
inline Part slice(const Part& part, uint64_t begin, uint64_t bytes) {
  Part result = packed(bytes, part.place);
  result.place.at += begin;
  return result;
}
// The shares of ranks differ by an element at most. The last share also has the bytes that are no whole element.
inline uint64_t share_begin(uint64_t count, uint64_t ranks, uint64_t rank) {
  return count / ranks * rank + count % ranks * rank / ranks;
}
inline Part shares(const Part& part, uint32_t ranks, uint32_t first, uint32_t count, uint64_t element_bytes) {
  const auto begin = [&](uint32_t rank) {
    return rank == ranks ? part.bytes : share_begin(part.bytes / element_bytes, ranks, rank) * element_bytes;
  };
  return slice(part, begin(first), begin(first + count) - begin(first));
}

// A rank's partial result of a reduction: its own operand until a message has arrived, then the contents of `sum`. The
// first message lands in `sum`, unless the rank's own operand lies there; others land in memory from `free` on.
struct Reduction {
  Part own;
  Part sum;
  uint64_t free;  // the first byte of work memory that is free
  bool has_received = false;  // a message has arrived

  Reduction(const Part& operand, Place result, uint64_t begin = 0)
      : own(operand), sum(at_place(operand, result)), free(begin) {}

  [[nodiscard]] Part partial() const { return has_received ? sum : own; }
  // Adds a message from ranks that are lower, or higher, than all ranks whose operands are held.
  void receive(uint32_t peer, bool is_lower, Rounds& rounds) {
    if (!has_received && own.place != sum.place) {
      rounds.receive(peer, sum);
      rounds.combine({sum, own, !is_lower});
    } else {
      const Part landing = at_place(own, {.at = free, .area = Area::work});
      rounds.receive(peer, landing);
      rounds.combine({sum, landing, is_lower});
      free += own.bytes;
    }
    has_received = true;
  }
  // Ends the reduction of a rank that may have received nothing.
  void end_alone(Rounds& rounds) const {
    if (!has_received && own.place != sum.place) rounds.copy(own, sum);
  }
};

// rank_after() and rank_before() return the rank `distance` places further on, or back, in the ring of ranks.
// place_of() returns a rank's place in a tree whose root is the call's root, and rank_at() the rank at a place.
inline uint32_t rank_after(const Collective& call, uint64_t distance) {
  return static_cast<uint32_t>((call.rank + distance) % call.size);
}
inline uint32_t rank_before(const Collective& call, uint64_t distance) {
  return static_cast<uint32_t>((call.rank + call.size - distance % call.size) % call.size);
}
inline uint32_t place_of(const Collective& call) { return rank_before(call, call.root); }
inline uint32_t rank_at(const Collective& call, uint32_t place) {
  return static_cast<uint32_t>((uint64_t{place} + call.root) % call.size);
}

// True if the operand lies where the result is received: no message may land there.
inline bool lands_on_operand(const Collective& call) {
  return call.in_place && data(call.receives).place.area == Area::receive;
}

// The place where messages with the result of an all-reduce land: where the result is received, or memory of the
// algorithm's own, from which the result is copied at the end.
struct Outcome {
  Part own;
  Part received;
  Part result;
  uint64_t free = 0;  // the first byte of work memory that is free

  explicit Outcome(const Collective& call, uint64_t begin = 0)
      : own(data(call.sends)), received(at_place(own, data(call.receives).place)), result(received), free(begin) {
    if (!lands_on_operand(call)) return;
    result = at_place(own, {.at = begin, .area = Area::work});
    free += own.bytes;
  }
  void end(Rounds& rounds) const {
    if (result.place == received.place) return;
    rounds.next();
    rounds.copy(result, received);
  }
};
// Adds the reduction of a single rank: at most a copy of its operand.
inline void reduce_alone(const Collective& call, Rounds& rounds) {
  const Part own = data(call.sends);
  Reduction(own, data(call.receives).place).end_alone(rounds);
}

// The binomial tree in which the children of place p are p + 2^k, for each 2^k below the lowest bit that is set in p. A
// subtree holds the places from its root on. binomial_reach() returns that bit; for place 0 it returns the power of two
// from `size` on.
[[nodiscard]] uint32_t binomial_reach(uint32_t size, uint32_t place);
[[nodiscard]] inline uint32_t binomial_subtree(uint32_t size, uint32_t place) {
  return std::min(binomial_reach(size, place), size - place);
}
[[nodiscard]] std::vector<uint32_t> binomial_children(uint32_t size, uint32_t place);  // the largest subtree first

}  // namespace algorithms
}  // namespace spinloom::collective
