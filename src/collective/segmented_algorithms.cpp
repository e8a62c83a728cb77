// Broadcasts and reductions in segments, which follow each other along a chain or through trees of two children.
#include <bit>

#include "collective/algorithms.hpp"

namespace spinloom::collective::algorithms {
namespace {

// Of a message the segments of which the numbers leave the same rest.
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

Segments segments_of(const Part& part, const Collective& call) { return {part.bytes, call.segment_bytes}; }

// Each segment goes on as soon as it has come from all, while the next one comes. `receive` and `held` of a segment.
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

void broadcast(const Collective& call, const std::vector<uint32_t>& from, const std::vector<uint32_t>& to,
               const Segments& segments, Rounds& rounds) {
  const Part all = broadcast_data(call);
  const auto held = [&](uint64_t number) { return segments.part(all, number); };
  relay(
      call, from, to, segments,
      [&](uint64_t number, uint32_t peer) { rounds.receive(peer, segments.part(all, number)); }, held, rounds);
}

// The first child's segments land where their sums are, those of each other one in memory of their own.
void reduce(const Collective& call, const std::vector<uint32_t>& from, const std::vector<uint32_t>& to,
            Rounds& rounds) {
  const Part own = data(call.sends);
  const Segments segments = segments_of(own, call);
  const bool is_root = call.rank == call.root;
  const Part sum = moved(own, is_root ? data(call.receives).place : Place{.area = Area::work});
  uint64_t free = is_root ? 0 : own.bytes;
  Reduction now(own, sum.place);  // of a segment
  uint64_t whose = segments.end();
  const auto receive = [&](uint64_t number, uint32_t peer) {
    if (number != whose) now = Reduction(segments.part(own, number), segments.part(sum, number).place, free);
    whose = number;
    now.receive(peer, false, rounds);
    free = now.free;
  };
  const auto held = [&](uint64_t number) { return segments.part(from.empty() ? own : sum, number); };
  relay(call, from, to, segments, receive, held, rounds);
  if (from.empty() && to.empty()) Reduction(own, sum.place).end_alone(rounds);
}

std::vector<uint32_t> below_in_chain(const Collective& call) {
  const uint32_t place = place_of(call);
  return place + 1 < call.size ? std::vector{place + 1} : std::vector<uint32_t>{};
}
std::vector<uint32_t> above_in_chain(const Collective& call) {
  const uint32_t place = place_of(call);
  return place > 0 ? std::vector{place - 1} : std::vector<uint32_t>{};
}

// The children of place i are 2 i + 1 and 2 i + 2.
std::vector<uint32_t> below_in_tree(const Collective& call) {
  std::vector<uint32_t> found;
  for (const uint64_t child : {2 * uint64_t{place_of(call)} + 1, 2 * uint64_t{place_of(call)} + 2}) {
    if (child < call.size) found.push_back(static_cast<uint32_t>(child));
  }
  return found;
}
std::vector<uint32_t> above_in_tree(const Collective& call) {
  const uint32_t place = place_of(call);
  return place > 0 ? std::vector{(place - 1) / 2} : std::vector<uint32_t>{};
}

// The binary tree over 1 to `count` in whose order numbers ascend: odd ones are leaves. It has the root, place 0, above.
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

// Two trees, each for every second segment. In the second one numbers are mirrored or, where that would leave leaves
// leaves, one further: but for one rank, who passes segments on in one tree is a leaf of the other (Sanders, Speck,
// Traeff 2009).
void double_tree(const Collective& call, uint32_t second, Rounds& rounds) {
  const OrderedTree tree{call.size - 1};
  const auto other = [&](uint32_t place, bool back) -> uint32_t {
    if (second == 0 || place == 0) return place;
    if (tree.count % 2 == 0) return tree.count + 1 - place;
    if (back) return place == tree.count ? 1 : place + 1;
    return place == 1 ? tree.count : place - 1;
  };
  const uint32_t place = place_of(call);
  const uint32_t number = other(place, false);
  std::vector<uint32_t> from;
  if (place > 0) from.push_back(other(tree.parent(number), true));
  std::vector<uint32_t> to = tree.children(number);
  for (uint32_t& one : to) one = other(one, true);
  Segments segments = segments_of(broadcast_data(call), call);
  segments.first = second;
  segments.step = 2;
  broadcast(call, from, to, segments, rounds);
}

}  // namespace

void chain_bcast(const Collective& call, Rounds& rounds) {
  broadcast(call, above_in_chain(call), below_in_chain(call), segments_of(broadcast_data(call), call), rounds);
}

void chain_reduce(const Collective& call, Rounds& rounds) {
  reduce(call, below_in_chain(call), above_in_chain(call), rounds);
}

void binary_bcast(const Collective& call, Rounds& rounds) {
  broadcast(call, above_in_tree(call), below_in_tree(call), segments_of(broadcast_data(call), call), rounds);
}

void binary_reduce(const Collective& call, Rounds& rounds) {
  reduce(call, below_in_tree(call), above_in_tree(call), rounds);
}

void double_tree_first(const Collective& call, Rounds& rounds) { double_tree(call, 0, rounds); }
void double_tree_second(const Collective& call, Rounds& rounds) { double_tree(call, 1, rounds); }

}  // namespace spinloom::collective::algorithms
