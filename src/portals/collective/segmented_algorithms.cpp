// Algorithms in segments, which follow each other along a chain or through trees of two children.
#include <bit>

#include "portals/collective/algorithms.hpp"

namespace spinloom::collective::algorithms {
namespace {

// The segments of a message whose numbers leave the rest `first` when divided by `step`.
struct Segments {
  uint64_t bytes;
  uint64_t each_bytes;
  uint64_t first = 0;
  uint64_t step = 1;

  [[nodiscard]] uint64_t end() const { return bytes == 0 ? 1 : bytes / each_bytes + (bytes % each_bytes != 0); }
  [[nodiscard]] Part part(const Part& of, uint64_t number) const {
    return slice(of, number * each_bytes, std::min(each_bytes, bytes - number * each_bytes));
  }
};

// Segments of a reduction hold whole elements.
Segments segments_of(const Part& part, const Collective& call) {
  const uint64_t elements = std::max<uint64_t>(call.segment_bytes / call.element_bytes, 1);
  return {part.bytes, elements * call.element_bytes};
}

// A rank's place in a tree or a chain: the places next to it, and depths.
struct TreePosition {
  std::vector<uint32_t> above;
  std::vector<uint32_t> below;
  uint64_t depth;
  uint64_t deepest;  // no place is deeper
};

// Each segment goes on as soon as it has come from all, while the next one comes. receive(number, peer) adds the
// receive of a segment; held(number) returns the segment to send.
template <class Receive, class Held>
void relay(const Collective& call, const std::vector<uint32_t>& from, const std::vector<uint32_t>& to,
           const Segments& segments, const Receive& receive, const Held& held, Rounds& rounds) {
  const auto send = [&](uint64_t number) {
    for (const uint32_t place : to) rounds.send(rank_at(call, place), held(number));
  };
  uint64_t before = segments.end();
  for (uint64_t number = segments.first; number < segments.end(); number += segments.step) {
    if (before < number && !from.empty()) send(before);
    for (const uint32_t place : from) receive(number, rank_at(call, place));
    if (from.empty()) send(number);
    rounds.next();
    before = number;
  }
  if (before < segments.end() && !from.empty()) send(before);
}

void down(const Collective& call, const Part& all, const TreePosition& position, const Segments& segments,
          Rounds& rounds) {
  relay(
      call, position.above, position.below, segments,
      [&](uint64_t number, uint32_t peer) { rounds.receive(peer, segments.part(all, number)); },
      [&](uint64_t number) { return segments.part(all, number); }, rounds);
}

// The first child's segments land where their sums are; segments of other children land in work memory from `free` on.
void up(const Collective& call, const Part& sum, const TreePosition& position, const Segments& segments, uint64_t& free,
        Rounds& rounds) {
  const Part own = data(call.sends);
  Reduction current(own, sum.place);  // the reduction of the current segment
  uint64_t segment = segments.end();
  const auto receive = [&](uint64_t number, uint32_t peer) {
    if (number != segment) current = Reduction(segments.part(own, number), segments.part(sum, number).place, free);
    segment = number;
    current.receive(peer, false, rounds);
    free = current.free;
  };
  const auto held = [&](uint64_t number) { return segments.part(position.below.empty() ? own : sum, number); };
  relay(call, position.below, position.above, segments, receive, held, rounds);
}

void broadcast(const Collective& call, const TreePosition& position, Rounds& rounds) {
  const Part all = broadcast_data(call);
  down(call, all, position, segments_of(all, call), rounds);
}

void reduce(const Collective& call, const TreePosition& position, Rounds& rounds) {
  if (call.size == 1) return reduce_alone(call, rounds);
  const Part own = data(call.sends);
  const bool is_root = call.rank == call.root;
  uint64_t free = is_root ? 0 : own.bytes;
  up(call, at_place(own, is_root ? data(call.receives).place : Place{.area = Area::work}), position,
     segments_of(own, call), free, rounds);
}

// Rounds of which the first one is in `step`, if both ends of each message are to be in the same one.
struct Strand {
  uint64_t step;
  std::vector<Round> rounds;
};
Strand make_strand(uint64_t step, Rounds&& rounds) { return {step, rounds.take()}; }

// Makes one round of all that the strands do in the same step. So no rank waits for one strand before the next step of
// another.
void merge(const std::vector<Strand>& strands, Rounds& rounds) {
  uint64_t end = 0;
  for (const Strand& strand : strands) end = std::max(end, strand.step + strand.rounds.size());
  for (uint64_t step = 0; step < end; ++step) {
    for (const Strand& strand : strands) {
      if (step < strand.step || step - strand.step >= strand.rounds.size()) continue;
      const Round& round = strand.rounds[step - strand.step];
      for (const Leg& leg : round.legs) {
        if (leg.side == Side::send) rounds.send(leg.peer, leg.part);
        if (leg.side == Side::receive) rounds.receive(leg.peer, leg.part);
      }
      for (const Combine& combine : round.combines) rounds.combine(combine);
    }
    rounds.next();
  }
}

// Segments go up and down each of the ways, whose root is that of the call. A segment that is complete goes down while
// the next one comes up.
void reduce_and_broadcast(const Collective& call, const std::vector<TreePosition>& positions, Rounds& rounds) {
  if (call.size == 1) return reduce_alone(call, rounds);
  const Outcome outcome(call);
  const bool is_root = call.rank == call.root;
  const Part result = is_root ? outcome.received : outcome.result;
  const Part sum = is_root ? result : at_place(outcome.own, {.at = outcome.free, .area = Area::work});
  uint64_t free = outcome.free + outcome.own.bytes;
  std::vector<Strand> strands;
  Segments segments = segments_of(outcome.own, call);
  segments.step = positions.size();
  for (const TreePosition& position : positions) {
    Rounds rising;
    up(call, sum, position, segments, free, rising);
    strands.push_back(
        make_strand(position.deepest - position.depth - (position.below.empty() ? 0 : 1), std::move(rising)));
    Rounds falling;
    down(call, result, position, segments, falling);
    strands.push_back(make_strand(position.deepest + position.depth - (is_root ? 0 : 1), std::move(falling)));
    ++segments.first;
  }
  merge(strands, rounds);
  if (!is_root) outcome.end(rounds);
}

TreePosition position_in_chain(const Collective& call) {
  const uint32_t place = place_of(call);
  TreePosition position{{}, {}, place, call.size - 1};
  if (place > 0) position.above = {place - 1};
  if (place + 1 < call.size) position.below = {place + 1};
  return position;
}

// The children of place i are 2 i + 1 and 2 i + 2.
TreePosition position_in_binary_tree(const Collective& call) {
  const uint64_t place = place_of(call);
  TreePosition position{{},
                        {},
                        static_cast<uint64_t>(std::bit_width(place + 1)) - 1,
                        static_cast<uint64_t>(std::bit_width(call.size)) - 1};
  if (place > 0) position.above = {static_cast<uint32_t>((place - 1) / 2)};
  for (const uint64_t child : {2 * place + 1, 2 * place + 2}) {
    if (child < call.size) position.below.push_back(static_cast<uint32_t>(child));
  }
  return position;
}

// The binary search tree of the numbers 1 to `count`, in which odd numbers are leaves. Place 0, the root of the whole
// tree, is above its top.
struct OrderedTree {
  uint32_t count;

  static uint32_t lowest_bit(uint32_t node) { return node & (~node + 1); }
  [[nodiscard]] uint32_t top() const { return std::bit_floor(count); }
  [[nodiscard]] uint32_t parent(uint32_t node) const {
    if (node == top()) return 0;
    do {
      node = (node & 2 * lowest_bit(node)) != 0 ? node - lowest_bit(node) : node + lowest_bit(node);
    } while (node > count);
    return node;
  }
  [[nodiscard]] std::vector<uint32_t> children(uint32_t node) const {
    if (node == 0) return count == 0 ? std::vector<uint32_t>{} : std::vector{top()};
    std::vector<uint32_t> children;
    uint32_t distance = lowest_bit(node) / 2;
    if (distance > 0) children.push_back(node - distance);
    while (distance > 0 && node + distance > count) distance /= 2;
    if (distance > 0) children.push_back(node + distance);
    return children;
  }
};

// One of two trees, each for every second segment. In the second tree numbers are mirrored or, if leaves would stay
// leaves, shifted by one. So each rank but one that passes segments on in one tree is a leaf of the other (Sanders,
// Speck, Traeff 2009).
TreePosition position_in_double_tree(const Collective& call, bool is_second) {
  const OrderedTree tree{call.size - 1};
  const auto swapped = [&](uint32_t place, bool back) -> uint32_t {
    if (!is_second || place == 0) return place;
    if (tree.count % 2 == 0) return tree.count + 1 - place;
    if (back) return place == tree.count ? 1 : place + 1;
    return place == 1 ? tree.count : place - 1;
  };
  const uint32_t number = swapped(place_of(call), false);
  TreePosition position{{}, tree.children(number), 0, static_cast<uint64_t>(std::bit_width(tree.count))};
  for (uint32_t& node : position.below) node = swapped(node, true);
  if (number == 0) return position;
  position.above = {swapped(tree.parent(number), true)};
  for (uint32_t node = number; node != 0; node = tree.parent(node)) ++position.depth;
  return position;
}

// Returns the call with rank 0 as its root: an all-reduce has none of its own.
Collective with_first_as_root(const Collective& call) {
  Collective result = call;
  result.root = 0;
  return result;
}

void broadcast_in_one_tree(const Collective& call, bool is_second, Rounds& rounds) {
  const Part all = broadcast_data(call);
  Segments segments = segments_of(all, call);
  segments.first = is_second ? 1 : 0;
  segments.step = 2;
  down(call, all, position_in_double_tree(call, is_second), segments, rounds);
}

}  // namespace

void chain_bcast(const Collective& call, Rounds& rounds) { broadcast(call, position_in_chain(call), rounds); }
void chain_reduce(const Collective& call, Rounds& rounds) { reduce(call, position_in_chain(call), rounds); }
void binary_bcast(const Collective& call, Rounds& rounds) { broadcast(call, position_in_binary_tree(call), rounds); }
void binary_reduce(const Collective& call, Rounds& rounds) { reduce(call, position_in_binary_tree(call), rounds); }

void double_tree_first(const Collective& call, Rounds& rounds) { broadcast_in_one_tree(call, false, rounds); }
void double_tree_second(const Collective& call, Rounds& rounds) { broadcast_in_one_tree(call, true, rounds); }
void double_tree_bcast(const Collective& call, Rounds& rounds) {
  std::vector<Strand> strands;
  for (const bool is_second : {false, true}) {
    Rounds falling;
    broadcast_in_one_tree(call, is_second, falling);
    strands.push_back(
        make_strand(std::max<uint64_t>(position_in_double_tree(call, is_second).depth, 1), std::move(falling)));
  }
  merge(strands, rounds);
}

void chain_allreduce(const Collective& call, Rounds& rounds) {
  const Collective all = with_first_as_root(call);
  reduce_and_broadcast(all, {position_in_chain(all)}, rounds);
}
void binary_allreduce(const Collective& call, Rounds& rounds) {
  const Collective all = with_first_as_root(call);
  reduce_and_broadcast(all, {position_in_binary_tree(all)}, rounds);
}
void double_tree_allreduce(const Collective& call, Rounds& rounds) {
  const Collective all = with_first_as_root(call);
  reduce_and_broadcast(all, {position_in_double_tree(all, false), position_in_double_tree(all, true)}, rounds);
}

}  // namespace spinloom::collective::algorithms
