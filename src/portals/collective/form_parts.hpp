// FormParts - the parts of Forms: trees, segments, shares, and ranks beyond a power of two.
//
// Contract: functions that take a CallShape read the members of it that they need. Only forms*.cpp include this.
// Threads: plain values. Time: modelled, in picoseconds.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <utility>
#include <vector>

#include "portals/collective/forms.hpp"

namespace spinloom::collective::forms {

inline uint32_t rounds_of(uint32_t ranks) { return static_cast<uint32_t>(std::bit_width(ranks - 1)); }

// The time of `count` operations one after the other: the first takes `first`, each further one ends `period` later.
inline Picoseconds one_by_one(Picoseconds first, Picoseconds period, uint64_t count) {
  return first + period * (count - 1);
}

// The times down and up the binomial trees of algorithms.hpp. bytes_of(n) is the size of a message for n ranks. The
// time of a full tree is computed once.
template <class BytesOf>
class Tree {
 public:
  Tree(const Model& model, bool moves_own, uint64_t own, BytesOf bytes_of)
      : model_(model), moves_own_(moves_own), own_(own), bytes_of_(bytes_of) {}

  // The time from when the top of `ranks` ranks may send until the last rank has its message.
  Picoseconds down(uint64_t ranks) {
    if (ranks == 1) return 0;
    std::optional<Picoseconds>* const cached = cached_time_of(ranks);
    if (cached != nullptr && cached->has_value()) return **cached;
    Picoseconds last = moves_own_ ? model_.hop(own_) : 0;
    Picoseconds may_send = 0;
    for (uint64_t distance = std::bit_ceil(ranks) / 2; distance > 0; distance /= 2) {
      const uint64_t below = std::min(distance, ranks - distance);
      last = std::max(last, may_send + model_.hop(bytes_of_(below)) + down(below));
      may_send += model_.gap(bytes_of_(below));
    }
    if (cached != nullptr) *cached = last;
    return last;
  }

  // The time from the begin until the top of `ranks` ranks has the data of all. `combines`: the bytes of each child's
  // message that a rank combines; nothing if it does not combine.
  Picoseconds up(uint64_t ranks, std::optional<uint64_t> combines) {
    if (ranks == 1) return 0;
    std::optional<Picoseconds>* const cached = cached_time_of(ranks);
    if (cached != nullptr && cached->has_value()) return **cached;
    struct Child {
      Picoseconds arrives;
      uint64_t bytes;
      size_t number;
    };
    std::vector<Child> children;
    for (uint64_t distance = 1; distance < ranks; distance *= 2) {
      const uint64_t below = std::min(distance, ranks - distance);
      children.push_back({up(below, combines) + model_.L_ps, bytes_of_(below), children.size()});
    }
    std::vector<Picoseconds> landed(children.size());
    std::ranges::sort(children, {}, [](const Child& child) { return std::pair(child.arrives, child.number); });
    Picoseconds nic_is_free = 0;
    for (const Child& child : children) {
      nic_is_free = std::max(nic_is_free, child.arrives);
      landed[child.number] = nic_is_free + model_.G.ps_up(child.bytes) + model_.match(child.bytes);
      nic_is_free += model_.take(child.bytes);
    }
    Picoseconds complete = moves_own_ ? model_.hop(own_) : 0;
    for (const Picoseconds landing : landed)
      complete = std::max(complete, landing) + (combines ? model_.local(*combines) : 0);
    if (cached != nullptr) *cached = complete;
    return complete;
  }

 private:
  std::optional<Picoseconds>* cached_time_of(uint64_t ranks) {
    return std::has_single_bit(ranks) ? &full_[static_cast<size_t>(std::countr_zero(ranks))] : nullptr;
  }

  const Model& model_;
  bool moves_own_;
  uint64_t own_;
  BytesOf bytes_of_;
  std::array<std::optional<Picoseconds>, 65> full_ = {};  // the times of full trees, by the logarithm of their ranks
};

inline Picoseconds bcast_down(const Model& model, uint32_t ranks, uint64_t bytes) {
  return Tree(model, false, 0, [bytes](uint64_t) { return bytes; }).down(ranks);
}
inline Picoseconds reduce_up(const Model& model, uint32_t ranks, uint64_t bytes) {
  return Tree(model, false, 0, [bytes](uint64_t) { return bytes; }).up(ranks, bytes);
}

struct Segments {
  uint64_t count;
  uint64_t each_bytes;
  uint64_t last_bytes;
  explicit Segments(const CallShape& shape)
      : count(shape.bytes == 0 ? 1 : shape.bytes / shape.segment_bytes + (shape.bytes % shape.segment_bytes != 0)),
        each_bytes(std::min(shape.segment_bytes, shape.bytes)),
        last_bytes(shape.bytes - (count - 1) * each_bytes) {}
};

// The bytes of the largest share of `ranks` ranks.
inline uint64_t share_of(const CallShape& shape, uint64_t ranks) {
  const uint64_t elements = shape.bytes / shape.element_bytes;
  const uint64_t rest = shape.bytes % shape.element_bytes;
  return std::max((elements / ranks + (elements % ranks != 0)) * shape.element_bytes,
                  elements / ranks * shape.element_bytes + rest);
}

// Recursive doubling and halving work among a power of two of the ranks. Each rank beyond it leaves its part with a
// neighbour and gets the result from there. These neighbours have the first places, and begin late. A place ends when
// the part of the farthest late place has come; the hops of that part are the bits in which the two places differ.
struct Fold {
  uint64_t power;
  uint64_t beyond;  // the number of ranks beyond the power of two
  uint32_t rounds;
  explicit Fold(uint32_t ranks)
      : power(std::bit_floor(ranks)), beyond(ranks - power), rounds(static_cast<uint32_t>(std::countr_zero(power))) {}

  // The blocks of the largest group of 2^round places; a late place has two blocks.
  [[nodiscard]] uint64_t blocks(uint32_t round) const {
    return (uint64_t{1} << round) + std::min(uint64_t{1} << round, beyond);
  }
  // The time until all ranks have ended. `first`: the delay of the late places; `back`: the bytes that go back to the
  // ranks beyond.
  template <class BytesOf>
  [[nodiscard]] Picoseconds end_time(const Model& model, Picoseconds first, const BytesOf& bytes_of,
                                     uint64_t back) const {
    Picoseconds all = 0;
    Picoseconds among_late_places = 0;
    for (uint32_t round = 0; round < rounds; ++round) {
      all += model.hop(bytes_of(round));
      if (beyond > (uint64_t{1} << round)) among_late_places += model.hop(bytes_of(round));
    }
    if (beyond == 0) return all;
    return std::max(first + all, std::max(all, first + among_late_places) + model.hop(back));
  }
};

// The forms, grouped by operation; forms_of_data.cpp and forms_of_blocks.cpp define them.
Form dissemination, linear_barrier, linear_bcast, binomial_bcast, scatter_ring_bcast, chain_bcast, binary_bcast;
Form double_tree_bcast;
Form linear_reduce, binomial_reduce, chain_reduce, binary_reduce, tree_allreduce, chain_allreduce, binary_allreduce;
Form double_tree_allreduce, recursive_doubling_allreduce, ring_allreduce, rabenseifner_allreduce;
Form pairwise_reduce_scatter, recursive_halving_reduce_scatter, binomial_scan, linear_scan, linear_exscan;
Form binomial_exscan;
Form linear_scatter, all_at_once, binomial_gather, binomial_scatter, ring_allgather, doubling_allgather;
Form recursive_doubling_allgather, bruck_alltoall;

}  // namespace spinloom::collective::forms
