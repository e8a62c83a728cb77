// Forms of barriers, broadcasts, reductions and scans.
#include "portals/collective/form_parts.hpp"

namespace spinloom::collective::forms {

// -- Barriers

Picoseconds dissemination(const Model& model, const CallShape& shape) {
  return one_by_one(model.hop(0), std::max(model.hop(0), model.gap(0)), rounds_of(shape.ranks));
}
Picoseconds linear_barrier(const Model& model, const CallShape& shape) {
  const uint64_t others = shape.ranks - 1;
  return one_by_one(model.hop(0), model.take(0), others) + one_by_one(model.hop(0), model.gap(0), others);
}

// -- Broadcasts

Picoseconds linear_bcast(const Model& model, const CallShape& shape) {
  return one_by_one(model.hop(shape.bytes), model.gap(shape.bytes), shape.ranks - 1);
}
Picoseconds binomial_bcast(const Model& model, const CallShape& shape) {
  return bcast_down(model, shape.ranks, shape.bytes);
}
Picoseconds scatter_ring_bcast(const Model& model, const CallShape& shape) {
  const uint64_t share = share_of(shape, shape.ranks);
  const auto down = Tree(model, false, 0, [share](uint64_t below) { return share * below; }).down(shape.ranks);
  return down + model.hop(share) * (shape.ranks - 1);
}
Picoseconds chain_bcast(const Model& model, const CallShape& shape) {
  const Segments segments(shape);
  return model.take(segments.each_bytes) * (segments.count - 1) + model.hop(segments.each_bytes) * (shape.ranks - 2) +
         model.hop(segments.last_bytes);
}
// The farthest of the places 1 to `ranks` decides. The bits of a place, from the one behind the leading one on, are the
// way to it: a set bit is a turn to the second child.
Picoseconds binary_bcast(const Model& model, const CallShape& shape) {
  const Segments segments(shape);
  if (shape.ranks == 2) return chain_bcast(model, shape);
  const auto time_to = [&](uint64_t place) {
    const auto depth = static_cast<uint64_t>(std::bit_width(place)) - 1;
    const auto turns = static_cast<uint64_t>(std::popcount(place)) - 1;
    const uint64_t last_turn = place & 1;
    return model.hop(segments.each_bytes) * (depth - 1) + model.gap(segments.each_bytes) * (turns - last_turn) +
           model.gap(segments.last_bytes) * last_turn + model.hop(segments.last_bytes);
  };
  Picoseconds longest = time_to(shape.ranks);
  for (uint32_t bit = 0; bit < static_cast<uint32_t>(std::bit_width(shape.ranks)); ++bit) {
    if ((shape.ranks >> bit & 1) == 0) continue;
    const uint64_t below = (uint64_t{shape.ranks} >> bit << bit) - 1;
    if (below > 1) longest = std::max(longest, time_to(below));
  }
  return std::max(2 * model.gap(segments.each_bytes), model.take(segments.each_bytes)) * (segments.count - 1) + longest;
}
// For every two segments a rank sends two messages, both to its children in one of the trees.
Picoseconds double_tree_bcast(const Model& model, const CallShape& shape) {
  const Segments segments(shape);
  const auto levels = static_cast<uint64_t>(std::bit_width(shape.ranks - 1)) - 1;
  return model.take(segments.each_bytes) * (segments.count - 1) + model.hop(segments.each_bytes) +
         (model.hop(segments.each_bytes) + model.gap(segments.each_bytes)) * levels;
}

// -- Reductions

Picoseconds linear_reduce(const Model& model, const CallShape& shape) {
  const Picoseconds local = model.local(shape.bytes);
  return one_by_one(model.hop(shape.bytes), std::max(model.take(shape.bytes), local), shape.ranks - 1) + local;
}
Picoseconds binomial_reduce(const Model& model, const CallShape& shape) {
  return reduce_up(model, shape.ranks, shape.bytes);
}
Picoseconds chain_reduce(const Model& model, const CallShape& shape) {
  const Segments segments(shape);
  const Picoseconds level = model.hop(segments.each_bytes) + model.local(segments.each_bytes);
  const Picoseconds by_link = model.take(segments.each_bytes) * (segments.count - 1) + model.hop(segments.last_bytes);
  const Picoseconds by_unit =
      model.A.ps_up(segments.each_bytes) * (segments.count - 1) + model.hop(segments.each_bytes);
  return level * (shape.ranks - 2) + std::max(by_link, by_unit) + model.local(segments.last_bytes);
}
Picoseconds binary_reduce(const Model& model, const CallShape& shape) {
  if (shape.ranks == 2) return chain_reduce(model, shape);
  const Segments segments(shape);
  const auto levels = static_cast<uint64_t>(std::bit_width(shape.ranks)) - 1;
  const Picoseconds local = model.local(segments.each_bytes);
  const Picoseconds level = model.hop(segments.each_bytes) + std::max(model.take(segments.each_bytes), local) + local;
  return 2 * std::max(model.take(segments.each_bytes), model.A.ps_up(segments.each_bytes)) * (segments.count - 1) +
         level * levels;
}
Picoseconds tree_allreduce(const Model& model, const CallShape& shape) {
  return reduce_up(model, shape.ranks, shape.bytes) + bcast_down(model, shape.ranks, shape.bytes);
}
namespace {
// Segments go up a chain or trees and down again. For each segment a rank sends and takes `messages` messages, and
// combines `parts` messages with its own data.
Picoseconds up_and_down(const Model& model, const CallShape& shape, Picoseconds first, uint64_t messages,
                        uint64_t parts) {
  const Segments segments(shape);
  const Picoseconds period =
      std::max(model.take(segments.each_bytes) * messages, model.A.ps_up(segments.each_bytes) * parts);
  return first + period * (segments.count - 1);
}
}  // namespace
Picoseconds chain_allreduce(const Model& model, const CallShape& shape) {
  const Segments segments(shape);
  const Picoseconds level = 2 * model.hop(segments.each_bytes) + model.local(segments.each_bytes);
  return up_and_down(model, shape, level * (shape.ranks - 1), shape.ranks > 2 ? 2 : 1, 1);
}
namespace {
Picoseconds tree_level(const Model& model, uint64_t bytes) {
  const Picoseconds local = model.local(bytes);
  return model.hop(bytes) + std::max(model.take(bytes), local) + local;
}
}  // namespace
Picoseconds binary_allreduce(const Model& model, const CallShape& shape) {
  if (shape.ranks == 2) return chain_allreduce(model, shape);
  const Segments segments(shape);
  const auto levels = static_cast<uint64_t>(std::bit_width(shape.ranks)) - 1;
  const Picoseconds level =
      tree_level(model, segments.each_bytes) + model.hop(segments.each_bytes) + model.gap(segments.each_bytes);
  return up_and_down(model, shape, level * levels, 3, 2);
}
Picoseconds double_tree_allreduce(const Model& model, const CallShape& shape) {
  const Segments segments(shape);
  const auto levels = static_cast<uint64_t>(std::bit_width(shape.ranks - 1)) - 1;
  const Picoseconds level =
      tree_level(model, segments.each_bytes) + model.hop(segments.each_bytes) + model.gap(segments.each_bytes);
  const Picoseconds top = 2 * model.hop(segments.each_bytes) + model.local(segments.each_bytes);
  return up_and_down(model, shape, top + level * levels, 2, 1);
}
namespace {
// Ranks beyond a power of two leave their part with a neighbour and get the result from it.
Picoseconds with_fold(const Model& model, const CallShape& shape, Picoseconds inner) {
  if (std::has_single_bit(shape.ranks)) return inner;
  return inner + 2 * model.hop(shape.bytes) + model.local(shape.bytes);
}
}  // namespace
Picoseconds recursive_doubling_allreduce(const Model& model, const CallShape& shape) {
  const Fold fold(shape.ranks);
  const Picoseconds first = model.hop(shape.bytes) + model.local(shape.bytes);
  return model.local(shape.bytes) * fold.rounds +
         fold.end_time(model, first, [&](uint32_t) { return shape.bytes; }, shape.bytes);
}
Picoseconds ring_allreduce(const Model& model, const CallShape& shape) {
  const uint64_t share = share_of(shape, shape.ranks);
  return (2 * model.hop(share) + model.local(share)) * (shape.ranks - 1);
}
Picoseconds rabenseifner_allreduce(const Model& model, const CallShape& shape) {
  Picoseconds inner = 0;
  for (uint64_t parts = 2; parts <= std::bit_floor(shape.ranks); parts *= 2) {
    const uint64_t share = share_of(shape, parts);
    inner += 2 * model.hop(share) + model.local(share);
  }
  return with_fold(model, shape, inner);
}
Picoseconds pairwise_reduce_scatter(const Model& model, const CallShape& shape) { return linear_reduce(model, shape); }
Picoseconds recursive_halving_reduce_scatter(const Model& model, const CallShape& shape) {
  const Fold fold(shape.ranks);
  const Picoseconds first = model.hop(shape.ranks * shape.bytes) + model.local(shape.ranks * shape.bytes);
  Picoseconds locals = 0;
  for (uint32_t round = 0; round < fold.rounds; ++round) locals += model.local(fold.blocks(round) * shape.bytes);
  return locals +
         fold.end_time(model, first, [&](uint32_t round) { return fold.blocks(round) * shape.bytes; }, shape.bytes);
}
// In the last round, of distance d, each rank from d on takes the sum of the rank d before it; these ranks, the first
// ranks - d ones, have done a scan among themselves until then.
Picoseconds binomial_scan(const Model& model, const CallShape& shape) {
  if (shape.ranks < 2) return 0;
  const Picoseconds hop = model.hop(shape.bytes);
  const Picoseconds local = model.local(shape.bytes);
  const uint32_t rounds = rounds_of(shape.ranks);
  CallShape others = shape;
  others.ranks = shape.ranks - (uint32_t{1} << (rounds - 1));
  return std::max((hop + local) * (rounds - 1), binomial_scan(model, others) + hop) + local;
}
Picoseconds linear_scan(const Model& model, const CallShape& shape) {
  return (model.hop(shape.bytes) + model.local(shape.bytes)) * (shape.ranks - 1);
}

// The last rank does not combine, and others combine what goes on.
Picoseconds linear_exscan(const Model& model, const CallShape& shape) {
  return shape.ranks == 2 ? model.hop(shape.bytes) : linear_scan(model, shape);
}
Picoseconds binomial_exscan(const Model& model, const CallShape& shape) {
  return shape.ranks == 2 ? model.hop(shape.bytes) : binomial_scan(model, shape);
}

}  // namespace spinloom::collective::forms
