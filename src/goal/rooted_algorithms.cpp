// Collective operations with a root, and barriers.
#include <bit>

#include "goal/algorithms.hpp"

namespace spinloom::goal::algorithms {
namespace {

struct Tree {
  uint32_t size;
  uint32_t root;
  uint32_t place;

  explicit Tree(const Collective& call) : size(call.size), root(call.root), place(place_of(call)) {}
  [[nodiscard]] uint32_t rank_of(uint32_t one) const { return static_cast<uint32_t>((uint64_t{one} + root) % size); }
  [[nodiscard]] uint32_t parent() const { return place - binomial_reach(size, place); }
  [[nodiscard]] uint32_t subtree(uint32_t one) const { return binomial_subtree(size, one); }
  [[nodiscard]] std::vector<uint32_t> children() const {  // the largest subtree first
    std::vector<uint32_t> found;
    for (uint32_t distance = binomial_reach(size, place) / 2; distance > 0; distance /= 2) {
      if (distance < size - place) found.push_back(place + distance);
    }
    return found;
  }
  [[nodiscard]] std::vector<uint32_t> children_small_first() const {
    std::vector<uint32_t> found = children();
    return {found.rbegin(), found.rend()};
  }
};

bool is_root(const Collective& call) { return call.rank == call.root; }

}  // namespace

uint32_t binomial_reach(uint32_t size, uint32_t place) {
  return place == 0 ? std::bit_ceil(size) : place & (~place + 1);
}

// A rank that has heard of d ranks, itself too, hears of radix - 1 times as many in a round.
void dissemination(const Collective& call, Rounds& rounds) {
  const Part part = block(call.sends, 0);
  for (uint64_t distance = 1; distance < call.size; distance *= call.radix) {
    for (uint64_t way = distance; way < std::min<uint64_t>(distance * call.radix, call.size); way += distance) {
      rounds.send(after(call, way), part);
      rounds.receive(before(call, way), part);
    }
    rounds.next();
  }
}

void linear_barrier(const Collective& call, Rounds& rounds) {
  const Part part = block(call.sends, 0);
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

// The root names its data as what it sends, the others as what they receive.
void binomial_bcast(const Collective& call, Rounds& rounds) {
  const Tree tree(call);
  const Part part = block(is_root(call) ? call.sends : call.receives, 0);
  if (tree.place != 0) {
    rounds.receive(tree.rank_of(tree.parent()), part);
    rounds.next();
  }
  for (const uint32_t child : tree.children()) rounds.send(tree.rank_of(child), part);
}

void linear_bcast(const Collective& call, Rounds& rounds) {
  if (!is_root(call)) return rounds.receive(call.root, block(call.receives, 0));
  for (uint32_t distance = 1; distance < call.size; ++distance)
    rounds.send(after(call, distance), block(call.sends, 0));
}

// Shares go down the tree, and then around the ring.
void scatter_ring_bcast(const Collective& call, Rounds& rounds) {
  const Tree tree(call);
  const uint64_t bytes = block(is_root(call) ? call.sends : call.receives, 0).bytes;
  const auto shares = [&](uint32_t place) {
    return packed(share_begin(bytes, call.size, place + tree.subtree(place)) - share_begin(bytes, call.size, place));
  };
  if (tree.place != 0) {
    rounds.receive(tree.rank_of(tree.parent()), shares(tree.place));
    rounds.next();
  }
  for (const uint32_t child : tree.children()) rounds.send(tree.rank_of(child), shares(child));
  rounds.next();
  for (uint32_t step = 0; step + 1 < call.size; ++step) {
    const auto place = [&](uint32_t back) { return (tree.place + 2 * call.size - back) % call.size; };
    rounds.send(after(call, 1), share(bytes, call.size, place(step)));
    rounds.receive(before(call, 1), share(bytes, call.size, place(step + 1)));
    rounds.next();
  }
}

void binomial_reduce(const Collective& call, Rounds& rounds) {
  const Tree tree(call);
  const Part part = block(call.sends, 0);
  for (const uint32_t child : tree.children_small_first()) {
    rounds.receive(tree.rank_of(child), part);
    rounds.combine(part.bytes);
    rounds.next();
  }
  if (tree.place != 0) rounds.send(tree.rank_of(tree.parent()), part);
}

void linear_reduce(const Collective& call, Rounds& rounds) {
  const Part part = block(call.sends, 0);
  if (!is_root(call)) return rounds.send(call.root, part);
  for (uint32_t distance = 1; distance < call.size; ++distance) {
    rounds.receive(after(call, distance), part);
    rounds.combine(part.bytes);
    rounds.next();
  }
}

// What others hold on its way is packed.
void binomial_gather(const Collective& call, Rounds& rounds) {
  const Tree tree(call);
  const Part own = block(call.sends, 0);
  const Part each = is_root(call) ? block(call.receives, call.rank) : packed(own.bytes);
  for (const uint32_t child : tree.children_small_first()) {
    rounds.receive(tree.rank_of(child), times(each, tree.subtree(child)));
    rounds.next();
  }
  if (is_root(call)) {
    if (!call.in_place) rounds.copy(own, each);
    return;
  }
  const uint32_t subtree = tree.subtree(tree.place);
  rounds.send(tree.rank_of(tree.parent()), subtree == 1 ? own : packed(own.bytes * subtree));
}

void linear_gather(const Collective& call, Rounds& rounds) {
  if (!is_root(call)) return rounds.send(call.root, block(call.sends, 0));
  for (uint32_t distance = 1; distance < call.size; ++distance) {
    rounds.receive(after(call, distance), block(call.receives, after(call, distance)));
  }
  if (!call.in_place) rounds.copy(block(call.sends, 0), block(call.receives, call.rank));
}

void binomial_scatter(const Collective& call, Rounds& rounds) {
  const Tree tree(call);
  const Part own = block(call.receives, 0);
  const Part each = is_root(call) ? block(call.sends, call.rank) : packed(own.bytes);
  if (!is_root(call)) {
    const uint32_t subtree = tree.subtree(tree.place);
    rounds.receive(tree.rank_of(tree.parent()), subtree == 1 ? own : packed(own.bytes * subtree));
    rounds.next();
  }
  for (const uint32_t child : tree.children()) rounds.send(tree.rank_of(child), times(each, tree.subtree(child)));
  if (is_root(call) && !call.in_place) rounds.copy(each, own);
}

void linear_scatter(const Collective& call, Rounds& rounds) {
  if (!is_root(call)) return rounds.receive(call.root, block(call.receives, 0));
  for (uint32_t distance = 1; distance < call.size; ++distance) {
    rounds.send(after(call, distance), block(call.sends, after(call, distance)));
  }
  if (!call.in_place) rounds.copy(block(call.sends, call.rank), block(call.receives, 0));
}

}  // namespace spinloom::goal::algorithms
