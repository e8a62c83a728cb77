// Forms of barriers, broadcasts, reductions and scans.
#include "portals/collective/form_parts.hpp"

namespace spinloom::collective::forms {

// -- Barriers

Picoseconds dissemination(const Model& model, const Question& ask) {
  return one_by_one(model.hop(0), std::max(model.hop(0), model.gap(0)), rounds_of(ask.ranks));
}
Picoseconds linear_barrier(const Model& model, const Question& ask) {
  const uint64_t others = ask.ranks - 1;
  return one_by_one(model.hop(0), model.take(0), others) + one_by_one(model.hop(0), model.gap(0), others);
}

// -- Broadcasts

Picoseconds linear_bcast(const Model& model, const Question& ask) {
  return one_by_one(model.hop(ask.bytes), model.gap(ask.bytes), ask.ranks - 1);
}
Picoseconds binomial_bcast(const Model& model, const Question& ask) { return bcast_down(model, ask.ranks, ask.bytes); }
Picoseconds scatter_ring_bcast(const Model& model, const Question& ask) {
  const uint64_t share = share_of(ask, ask.ranks);
  const auto down = Tree(model, false, 0, [share](uint64_t below) { return share * below; }).down(ask.ranks);
  return down + model.hop(share) * (ask.ranks - 1);
}
Picoseconds chain_bcast(const Model& model, const Question& ask) {
  const Segments segments(ask);
  return model.take(segments.each) * (segments.count - 1) + model.hop(segments.each) * (ask.ranks - 2) +
         model.hop(segments.last);
}
// The farthest of the places 1 to `ranks` decides. The bits of a place, from the one behind the leading one on, are the
// way to it: a set bit is a turn to the second child.
Picoseconds binary_bcast(const Model& model, const Question& ask) {
  const Segments segments(ask);
  if (ask.ranks == 2) return chain_bcast(model, ask);
  const auto until = [&](uint64_t place) {
    const auto depth = static_cast<uint64_t>(std::bit_width(place)) - 1;
    const auto turns = static_cast<uint64_t>(std::popcount(place)) - 1;
    const uint64_t last_turn = place & 1;
    return model.hop(segments.each) * (depth - 1) + model.gap(segments.each) * (turns - last_turn) +
           model.gap(segments.last) * last_turn + model.hop(segments.last);
  };
  Picoseconds most = until(ask.ranks);
  for (uint32_t bit = 0; bit < static_cast<uint32_t>(std::bit_width(ask.ranks)); ++bit) {
    if ((ask.ranks >> bit & 1) == 0) continue;
    const uint64_t below = (uint64_t{ask.ranks} >> bit << bit) - 1;
    if (below > 1) most = std::max(most, until(below));
  }
  return std::max(2 * model.gap(segments.each), model.take(segments.each)) * (segments.count - 1) + most;
}
// For every two segments a rank sends two messages, both to its children in one of the trees.
Picoseconds double_tree_bcast(const Model& model, const Question& ask) {
  const Segments segments(ask);
  const auto levels = static_cast<uint64_t>(std::bit_width(ask.ranks - 1)) - 1;
  return model.take(segments.each) * (segments.count - 1) + model.hop(segments.each) +
         (model.hop(segments.each) + model.gap(segments.each)) * levels;
}

// -- Reductions

Picoseconds linear_reduce(const Model& model, const Question& ask) {
  const Picoseconds local = model.local(ask.bytes);
  return one_by_one(model.hop(ask.bytes), std::max(model.take(ask.bytes), local), ask.ranks - 1) + local;
}
Picoseconds binomial_reduce(const Model& model, const Question& ask) { return reduce_up(model, ask.ranks, ask.bytes); }
Picoseconds chain_reduce(const Model& model, const Question& ask) {
  const Segments segments(ask);
  const Picoseconds level = model.hop(segments.each) + model.local(segments.each);
  const Picoseconds by_link = model.take(segments.each) * (segments.count - 1) + model.hop(segments.last);
  const Picoseconds by_unit = model.A.ps_up(segments.each) * (segments.count - 1) + model.hop(segments.each);
  return level * (ask.ranks - 2) + std::max(by_link, by_unit) + model.local(segments.last);
}
Picoseconds binary_reduce(const Model& model, const Question& ask) {
  if (ask.ranks == 2) return chain_reduce(model, ask);
  const Segments segments(ask);
  const auto levels = static_cast<uint64_t>(std::bit_width(ask.ranks)) - 1;
  const Picoseconds local = model.local(segments.each);
  const Picoseconds level = model.hop(segments.each) + std::max(model.take(segments.each), local) + local;
  return 2 * std::max(model.take(segments.each), model.A.ps_up(segments.each)) * (segments.count - 1) + level * levels;
}
Picoseconds tree_allreduce(const Model& model, const Question& ask) {
  return reduce_up(model, ask.ranks, ask.bytes) + bcast_down(model, ask.ranks, ask.bytes);
}
namespace {
// Segments go up a chain or trees and down again. For each segment a rank sends and takes `messages` messages, and
// combines `parts` messages with its own data.
Picoseconds up_and_down(const Model& model, const Question& ask, Picoseconds first, uint64_t messages, uint64_t parts) {
  const Segments segments(ask);
  const Picoseconds period = std::max(model.take(segments.each) * messages, model.A.ps_up(segments.each) * parts);
  return first + period * (segments.count - 1);
}
}  // namespace
Picoseconds chain_allreduce(const Model& model, const Question& ask) {
  const Segments segments(ask);
  const Picoseconds level = 2 * model.hop(segments.each) + model.local(segments.each);
  return up_and_down(model, ask, level * (ask.ranks - 1), ask.ranks > 2 ? 2 : 1, 1);
}
namespace {
Picoseconds tree_level(const Model& model, uint64_t bytes) {
  const Picoseconds local = model.local(bytes);
  return model.hop(bytes) + std::max(model.take(bytes), local) + local;
}
}  // namespace
Picoseconds binary_allreduce(const Model& model, const Question& ask) {
  if (ask.ranks == 2) return chain_allreduce(model, ask);
  const Segments segments(ask);
  const auto levels = static_cast<uint64_t>(std::bit_width(ask.ranks)) - 1;
  const Picoseconds level = tree_level(model, segments.each) + model.hop(segments.each) + model.gap(segments.each);
  return up_and_down(model, ask, level * levels, 3, 2);
}
Picoseconds double_tree_allreduce(const Model& model, const Question& ask) {
  const Segments segments(ask);
  const auto levels = static_cast<uint64_t>(std::bit_width(ask.ranks - 1)) - 1;
  const Picoseconds level = tree_level(model, segments.each) + model.hop(segments.each) + model.gap(segments.each);
  const Picoseconds top = 2 * model.hop(segments.each) + model.local(segments.each);
  return up_and_down(model, ask, top + level * levels, 2, 1);
}
namespace {
// Ranks beyond a power of two leave their part with a neighbour and get the result from it.
Picoseconds folded(const Model& model, const Question& ask, Picoseconds inner) {
  if (std::has_single_bit(ask.ranks)) return inner;
  return inner + 2 * model.hop(ask.bytes) + model.local(ask.bytes);
}
}  // namespace
Picoseconds recursive_doubling_allreduce(const Model& model, const Question& ask) {
  const Late late(ask.ranks);
  const Picoseconds first = model.hop(ask.bytes) + model.local(ask.bytes);
  return model.local(ask.bytes) * late.rounds + late.ends(model, first, [&](uint32_t) { return ask.bytes; }, ask.bytes);
}
Picoseconds ring_allreduce(const Model& model, const Question& ask) {
  const uint64_t share = share_of(ask, ask.ranks);
  return (2 * model.hop(share) + model.local(share)) * (ask.ranks - 1);
}
Picoseconds rabenseifner_allreduce(const Model& model, const Question& ask) {
  Picoseconds inner = 0;
  for (uint64_t parts = 2; parts <= std::bit_floor(ask.ranks); parts *= 2) {
    const uint64_t share = share_of(ask, parts);
    inner += 2 * model.hop(share) + model.local(share);
  }
  return folded(model, ask, inner);
}
Picoseconds pairwise_reduce_scatter(const Model& model, const Question& ask) { return linear_reduce(model, ask); }
Picoseconds recursive_halving_reduce_scatter(const Model& model, const Question& ask) {
  const Late late(ask.ranks);
  const Picoseconds first = model.hop(ask.ranks * ask.bytes) + model.local(ask.ranks * ask.bytes);
  Picoseconds locals = 0;
  for (uint32_t round = 0; round < late.rounds; ++round) locals += model.local(late.blocks(round) * ask.bytes);
  return locals + late.ends(model, first, [&](uint32_t round) { return late.blocks(round) * ask.bytes; }, ask.bytes);
}
// In the last round, of distance d, each rank from d on takes the sum of the rank d before it; these ranks, the first
// ranks - d ones, have done a scan among themselves until then.
Picoseconds binomial_scan(const Model& model, const Question& ask) {
  if (ask.ranks < 2) return 0;
  const Picoseconds hop = model.hop(ask.bytes);
  const Picoseconds local = model.local(ask.bytes);
  const uint32_t rounds = rounds_of(ask.ranks);
  Question others = ask;
  others.ranks = ask.ranks - (uint32_t{1} << (rounds - 1));
  return std::max((hop + local) * (rounds - 1), binomial_scan(model, others) + hop) + local;
}
Picoseconds linear_scan(const Model& model, const Question& ask) {
  return (model.hop(ask.bytes) + model.local(ask.bytes)) * (ask.ranks - 1);
}

// The last rank does not combine, and others combine what goes on.
Picoseconds linear_exscan(const Model& model, const Question& ask) {
  return ask.ranks == 2 ? model.hop(ask.bytes) : linear_scan(model, ask);
}
Picoseconds binomial_exscan(const Model& model, const Question& ask) {
  return ask.ranks == 2 ? model.hop(ask.bytes) : binomial_scan(model, ask);
}

}  // namespace spinloom::collective::forms
