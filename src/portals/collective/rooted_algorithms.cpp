// Collective operations with a root, and barriers.
#include <bit>

#include "portals/collective/algorithms.hpp"

namespace spinloom::collective::algorithms {
namespace {

struct Tree {
  uint32_t size;
  uint32_t root;
  uint32_t place;

  explicit Tree(const Collective& call) : size(call.size), root(call.root), place(place_of(call)) {}
  [[nodiscard]] uint32_t rank_of(uint32_t node) const { return static_cast<uint32_t>((uint64_t{node} + root) % size); }
  [[nodiscard]] uint32_t parent() const { return place - binomial_reach(size, place); }
  [[nodiscard]] uint32_t subtree(uint32_t node) const { return binomial_subtree(size, node); }
  [[nodiscard]] std::vector<uint32_t> children() const { return binomial_children(size, place); }
  [[nodiscard]] std::vector<uint32_t> children_small_first() const {
    std::vector<uint32_t> largest_first = children();
    return {largest_first.rbegin(), largest_first.rend()};
  }
};

bool is_root(const Collective& call) { return call.rank == call.root; }

// Only the root receives the result; the others sum up in work memory.
Place sum_of(const Collective& call) { return is_root(call) ? data(call.receives).place : Place{.area = Area::work}; }
uint64_t free_of(const Collective& call) { return is_root(call) ? 0 : data(call.sends).bytes; }

}  // namespace

uint32_t binomial_reach(uint32_t size, uint32_t place) {
  return place == 0 ? std::bit_ceil(size) : place & (~place + 1);
}

std::vector<uint32_t> binomial_children(uint32_t size, uint32_t place) {
  std::vector<uint32_t> children;
  for (uint32_t distance = binomial_reach(size, place) / 2; distance > 0; distance /= 2) {
    if (distance < size - place) children.push_back(place + distance);
  }
  return children;
}

// A rank that has heard of d ranks, itself included, hears of (radix - 1) d more in a round.
void dissemination(const Collective& call, Rounds& rounds) {
  const Part part = data(call.sends);
  for (uint64_t distance = 1; distance < call.size; distance *= call.radix) {
    for (uint64_t offset = distance; offset < std::min<uint64_t>(distance * call.radix, call.size);
         offset += distance) {
      rounds.send(rank_after(call, offset), part);
      rounds.receive(rank_before(call, offset), part);
    }
    rounds.next();
  }
}

void linear_barrier(const Collective& call, Rounds& rounds) {
  const Part part = data(call.sends);
  if (call.rank != 0) {
    rounds.send(0, part);
    rounds.next();
    rounds.receive(0, part);
    return;
  }
  for (uint32_t rank = 1; rank < call.size; ++rank) rounds.receive(rank, part);
  rounds.next();
  for (uint32_t rank = 1; rank < call.size; ++rank) rounds.send(rank, part);
}

void binomial_bcast(const Collective& call, Rounds& rounds) {
  const Tree tree(call);
  const Part part = broadcast_data(call);
  if (tree.place != 0) {
    rounds.receive(tree.rank_of(tree.parent()), part);
    rounds.next();
  }
  for (const uint32_t child : tree.children()) rounds.send(tree.rank_of(child), part);
}

void linear_bcast(const Collective& call, Rounds& rounds) {
  if (!is_root(call)) return rounds.receive(call.root, data(call.receives));
  for (uint32_t distance = 1; distance < call.size; ++distance)
    rounds.send(rank_after(call, distance), data(call.sends));
}

// Shares go down the tree and then around the ring, also to ranks that have them already.
void scatter_ring_bcast(const Collective& call, Rounds& rounds) {
  const Tree tree(call);
  const Part all = broadcast_data(call);
  const auto below = [&](uint32_t place) {
    return shares(all, call.size, place, tree.subtree(place), call.element_bytes);
  };
  if (tree.place != 0) {
    rounds.receive(tree.rank_of(tree.parent()), below(tree.place));
    rounds.next();
  }
  for (const uint32_t child : tree.children()) rounds.send(tree.rank_of(child), below(child));
  rounds.next();
  uint64_t free = 0;
  for (uint32_t step = 0; step + 1 < call.size; ++step) {
    const auto place = [&](uint32_t back) { return (tree.place + 2 * call.size - back) % call.size; };
    Part next = shares(all, call.size, place(step + 1), 1, call.element_bytes);
    if (place(step + 1) - tree.place < tree.subtree(tree.place)) {  // the rank has this share already
      next = work(next.bytes, free);
      free += next.bytes;
    }
    rounds.send(rank_after(call, 1), shares(all, call.size, place(step), 1, call.element_bytes));
    rounds.receive(rank_before(call, 1), next);
    rounds.next();
  }
}

// The places below are higher, and so are the ranks if the root is rank 0.
void binomial_reduce(const Collective& call, Rounds& rounds) {
  const Tree tree(call);
  Reduction reduction(data(call.sends), sum_of(call), free_of(call));
  for (const uint32_t child : tree.children_small_first()) {
    reduction.receive(tree.rank_of(child), false, rounds);
    rounds.next();
  }
  if (tree.place != 0) return rounds.send(tree.rank_of(tree.parent()), reduction.partial());
  reduction.end_alone(rounds);
}

// All receive the result. It does not land where sums were.
void tree_allreduce(const Collective& call, Rounds& rounds) {
  Collective rooted = call;
  rooted.root = 0;
  binomial_reduce(rooted, rounds);
  rounds.next();
  const Outcome outcome(call, data(call.sends).bytes * Tree(rooted).children().size());
  rooted.sends = rooted.receives = {call.rank == 0 ? outcome.received : outcome.result};
  binomial_bcast(rooted, rounds);
  if (call.rank != 0) outcome.end(rounds);
}

void linear_reduce(const Collective& call, Rounds& rounds) {
  Reduction reduction(data(call.sends), sum_of(call), free_of(call));
  if (!is_root(call)) return rounds.send(call.root, reduction.own);
  for (uint32_t distance = 1; distance < call.size; ++distance) {
    reduction.receive(rank_after(call, distance), false, rounds);
    rounds.next();
  }
  reduction.end_alone(rounds);
}

// Ranks between a sender and the root hold the blocks of their subtrees packed, their own block first.
void binomial_gather(const Collective& call, Rounds& rounds) {
  const Tree tree(call);
  const Part own = data(call.sends);
  const uint32_t subtree = tree.subtree(tree.place);
  if (!is_root(call) && subtree == 1) return rounds.send(tree.rank_of(tree.parent()), own);
  if (!is_root(call)) {
    rounds.copy(own, work(own.bytes, 0));
  } else if (!call.in_place) {
    rounds.copy(own, block(call.receives, call.rank));
  }
  for (const uint32_t child : tree.children_small_first()) {
    const uint32_t blocks = tree.subtree(child);
    rounds.receive(tree.rank_of(child),
                   is_root(call) ? wrapped_blocks(block(call.receives, tree.rank_of(child)), blocks, call.size)
                                 : work(own.bytes * blocks, own.bytes * (child - tree.place)));
    rounds.next();
  }
  if (!is_root(call)) rounds.send(tree.rank_of(tree.parent()), work(own.bytes * subtree, 0));
}

void linear_gather(const Collective& call, Rounds& rounds) {
  if (!is_root(call)) return rounds.send(call.root, data(call.sends));
  for (uint32_t distance = 1; distance < call.size; ++distance) {
    rounds.receive(rank_after(call, distance), block(call.receives, rank_after(call, distance)));
  }
  if (!call.in_place) rounds.copy(data(call.sends), block(call.receives, call.rank));
}

void binomial_scatter(const Collective& call, Rounds& rounds) {
  const Tree tree(call);
  const Part own = data(call.receives);
  if (!is_root(call)) {
    const uint32_t subtree = tree.subtree(tree.place);
    rounds.receive(tree.rank_of(tree.parent()), subtree == 1 ? own : work(own.bytes * subtree, 0));
    rounds.next();
    if (subtree > 1) rounds.copy(work(own.bytes, 0), own);
  } else if (!call.in_place) {
    rounds.copy(block(call.sends, call.rank), own);
  }
  for (const uint32_t child : tree.children()) {
    const uint32_t blocks = tree.subtree(child);
    rounds.send(tree.rank_of(child), is_root(call)
                                         ? wrapped_blocks(block(call.sends, tree.rank_of(child)), blocks, call.size)
                                         : work(own.bytes * blocks, own.bytes * (child - tree.place)));
  }
}

void linear_scatter(const Collective& call, Rounds& rounds) {
  if (!is_root(call)) return rounds.receive(call.root, data(call.receives));
  for (uint32_t distance = 1; distance < call.size; ++distance) {
    rounds.send(rank_after(call, distance), block(call.sends, rank_after(call, distance)));
  }
  if (!call.in_place) rounds.copy(block(call.sends, call.rank), data(call.receives));
}

}  // namespace spinloom::collective::algorithms
