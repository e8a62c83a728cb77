// Algorithms in segments, which follow each other along a chain or through trees of two children.
#include <bit>

#include "portals/collective/algorithms.hpp"

namespace spinloom::collective::algorithms {
namespace {

// The segments of a message whose numbers leave the rest `first` when divided by `step`.
struct Segments {
  uint64_t bytes;
  uint64_t each;
  uint64_t first = 0;
  uint64_t step = 1;

  [[nodiscard]] uint64_t end() const { return bytes == 0 ? 1 : bytes / each + (bytes % each != 0); }
  [[nodiscard]] Part part(const Part& of, uint64_t number) const {
    return slice(of, number * each, std::min(each, bytes - number * each));
  }
};

// Segments of a reduction hold whole elements.
Segments segments_of(const Part& part, const Collective& call) {
  const uint64_t elements = std::max<uint64_t>(call.segment_bytes / call.element_bytes, 1);
  return {part.bytes, elements * call.element_bytes};
}

// A rank's place in a tree or a chain: the places next to it, and depths.
struct Way {
  std::vector<uint32_t> above;
  std::vector<uint32_t> below;
  uint64_t depth;
  uint64_t deepest;  // at least the depth of any place
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

void down(const Collective& call, const Part& all, const Way& way, const Segments& segments, Rounds& rounds) {
  relay(
      call, way.above, way.below, segments,
      [&](uint64_t number, uint32_t peer) { rounds.receive(peer, segments.part(all, number)); },
      [&](uint64_t number) { return segments.part(all, number); }, rounds);
}

// The first child's segments land where their sums are; segments of other children land in work memory from `free` on.
void up(const Collective& call, const Part& sum, const Way& way, const Segments& segments, uint64_t& free,
        Rounds& rounds) {
  const Part own = data(call.sends);
  Reduction now(own, sum.place);  // the reduction of the current segment
  uint64_t whose = segments.end();
  const auto receive = [&](uint64_t number, uint32_t peer) {
    if (number != whose) now = Reduction(segments.part(own, number), segments.part(sum, number).place, free);
    whose = number;
    now.receive(peer, false, rounds);
    free = now.free;
  };
  const auto held = [&](uint64_t number) { return segments.part(way.below.empty() ? own : sum, number); };
  relay(call, way.below, way.above, segments, receive, held, rounds);
}

void broadcast(const Collective& call, const Way& way, Rounds& rounds) {
  const Part all = broadcast_data(call);
  down(call, all, way, segments_of(all, call), rounds);
}

void reduce(const Collective& call, const Way& way, Rounds& rounds) {
  if (call.size == 1) return reduce_alone(call, rounds);
  const Part own = data(call.sends);
  const bool is_root = call.rank == call.root;
  uint64_t free = is_root ? 0 : own.bytes;
  up(call, moved(own, is_root ? data(call.receives).place : Place{.area = Area::work}), way, segments_of(own, call),
     free, rounds);
}

// Rounds of which the first one is in `step`, if both ends of each message are to be in the same one.
struct Strand {
  uint64_t step;
  std::vector<Round> rounds;
};
Strand strand(uint64_t step, Rounds&& rounds) { return {step, rounds.take()}; }

// Makes one round of all that the strands do in the same step. So no rank waits for one strand before the next step of
// another.
void together(const std::vector<Strand>& strands, Rounds& rounds) {
  uint64_t end = 0;
  for (const Strand& one : strands) end = std::max(end, one.step + one.rounds.size());
  for (uint64_t step = 0; step < end; ++step) {
    for (const Strand& one : strands) {
      if (step < one.step || step - one.step >= one.rounds.size()) continue;
      const Round& round = one.rounds[step - one.step];
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
void reduce_and_broadcast(const Collective& call, const std::vector<Way>& ways, Rounds& rounds) {
  if (call.size == 1) return reduce_alone(call, rounds);
  const Outcome outcome(call);
  const bool is_root = call.rank == call.root;
  const Part result = is_root ? outcome.received : outcome.result;
  const Part sum = is_root ? result : moved(outcome.own, {.at = outcome.free, .area = Area::work});
  uint64_t free = outcome.free + outcome.own.bytes;
  std::vector<Strand> strands;
  Segments segments = segments_of(outcome.own, call);
  segments.step = ways.size();
  for (const Way& way : ways) {
    Rounds rising;
    up(call, sum, way, segments, free, rising);
    strands.push_back(strand(way.deepest - way.depth - (way.below.empty() ? 0 : 1), std::move(rising)));
    Rounds falling;
    down(call, result, way, segments, falling);
    strands.push_back(strand(way.deepest + way.depth - (is_root ? 0 : 1), std::move(falling)));
    ++segments.first;
  }
  together(strands, rounds);
  if (!is_root) outcome.end(rounds);
}

Way in_chain(const Collective& call) {
  const uint32_t place = place_of(call);
  Way way{{}, {}, place, call.size - 1};
  if (place > 0) way.above = {place - 1};
  if (place + 1 < call.size) way.below = {place + 1};
  return way;
}

// The children of place i are 2 i + 1 and 2 i + 2.
Way in_binary_tree(const Collective& call) {
  const uint64_t place = place_of(call);
  Way way{{},
          {},
          static_cast<uint64_t>(std::bit_width(place + 1)) - 1,
          static_cast<uint64_t>(std::bit_width(call.size)) - 1};
  if (place > 0) way.above = {static_cast<uint32_t>((place - 1) / 2)};
  for (const uint64_t child : {2 * place + 1, 2 * place + 2}) {
    if (child < call.size) way.below.push_back(static_cast<uint32_t>(child));
  }
  return way;
}

// The binary search tree of the numbers 1 to `count`, in which odd numbers are leaves. Place 0, the root of the whole
// tree, is above its top.
struct OrderedTree {
  uint32_t count;

  static uint32_t low(uint32_t one) { return one & (~one + 1); }
  [[nodiscard]] uint32_t top() const { return std::bit_floor(count); }
  [[nodiscard]] uint32_t parent(uint32_t one) const {
    if (one == top()) return 0;
    do {
      one = (one & 2 * low(one)) != 0 ? one - low(one) : one + low(one);
    } while (one > count);
    return one;
  }
  [[nodiscard]] std::vector<uint32_t> children(uint32_t one) const {
    if (one == 0) return count == 0 ? std::vector<uint32_t>{} : std::vector{top()};
    std::vector<uint32_t> found;
    uint32_t distance = low(one) / 2;
    if (distance > 0) found.push_back(one - distance);
    while (distance > 0 && one + distance > count) distance /= 2;
    if (distance > 0) found.push_back(one + distance);
    return found;
  }
};

// One of two trees, each for every second segment. In the second tree numbers are mirrored or, if leaves would stay
// leaves, shifted by one. So each rank but one that passes segments on in one tree is a leaf of the other (Sanders,
// Speck, Traeff 2009).
Way in_double_tree(const Collective& call, bool second) {
  const OrderedTree tree{call.size - 1};
  const auto other = [&](uint32_t place, bool back) -> uint32_t {
    if (!second || place == 0) return place;
    if (tree.count % 2 == 0) return tree.count + 1 - place;
    if (back) return place == tree.count ? 1 : place + 1;
    return place == 1 ? tree.count : place - 1;
  };
  const uint32_t number = other(place_of(call), false);
  Way way{{}, tree.children(number), 0, static_cast<uint64_t>(std::bit_width(tree.count))};
  for (uint32_t& one : way.below) one = other(one, true);
  if (number == 0) return way;
  way.above = {other(tree.parent(number), true)};
  for (uint32_t one = number; one != 0; one = tree.parent(one)) ++way.depth;
  return way;
}

// Returns the call with rank 0 as its root: an all-reduce has none of its own.
Collective from_first(const Collective& call) {
  Collective made = call;
  made.root = 0;
  return made;
}

void one_of_two(const Collective& call, bool second, Rounds& rounds) {
  const Part all = broadcast_data(call);
  Segments segments = segments_of(all, call);
  segments.first = second ? 1 : 0;
  segments.step = 2;
  down(call, all, in_double_tree(call, second), segments, rounds);
}

}  // namespace

void chain_bcast(const Collective& call, Rounds& rounds) { broadcast(call, in_chain(call), rounds); }
void chain_reduce(const Collective& call, Rounds& rounds) { reduce(call, in_chain(call), rounds); }
void binary_bcast(const Collective& call, Rounds& rounds) { broadcast(call, in_binary_tree(call), rounds); }
void binary_reduce(const Collective& call, Rounds& rounds) { reduce(call, in_binary_tree(call), rounds); }

void double_tree_first(const Collective& call, Rounds& rounds) { one_of_two(call, false, rounds); }
void double_tree_second(const Collective& call, Rounds& rounds) { one_of_two(call, true, rounds); }
void double_tree_bcast(const Collective& call, Rounds& rounds) {
  std::vector<Strand> strands;
  for (const bool second : {false, true}) {
    Rounds falling;
    one_of_two(call, second, falling);
    strands.push_back(strand(std::max<uint64_t>(in_double_tree(call, second).depth, 1), std::move(falling)));
  }
  together(strands, rounds);
}

void chain_allreduce(const Collective& call, Rounds& rounds) {
  const Collective all = from_first(call);
  reduce_and_broadcast(all, {in_chain(all)}, rounds);
}
void binary_allreduce(const Collective& call, Rounds& rounds) {
  const Collective all = from_first(call);
  reduce_and_broadcast(all, {in_binary_tree(all)}, rounds);
}
void double_tree_allreduce(const Collective& call, Rounds& rounds) {
  const Collective all = from_first(call);
  reduce_and_broadcast(all, {in_double_tree(all, false), in_double_tree(all, true)}, rounds);
}

}  // namespace spinloom::collective::algorithms
