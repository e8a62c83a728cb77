// Forms of operations in which each rank has a block.
#include "portals/collective/form_parts.hpp"

namespace spinloom::collective::forms {

// A rank copies its own block meanwhile, in a hop.
Picoseconds linear_scatter(const Model& model, const CallShape& shape) {
  return one_by_one(model.hop(shape.bytes), model.gap(shape.bytes), shape.ranks - 1);
}
Picoseconds all_at_once(const Model& model, const CallShape& shape) {
  return one_by_one(model.hop(shape.bytes), model.take(shape.bytes), shape.ranks - 1);
}
Picoseconds binomial_gather(const Model& model, const CallShape& shape) {
  return Tree(model, true, shape.bytes, [bytes = shape.bytes](uint64_t below) { return bytes * below; })
      .up(shape.ranks, {});
}
Picoseconds binomial_scatter(const Model& model, const CallShape& shape) {
  return Tree(model, true, shape.bytes, [bytes = shape.bytes](uint64_t below) { return bytes * below; })
      .down(shape.ranks);
}
Picoseconds ring_allgather(const Model& model, const CallShape& shape) {
  return model.hop(shape.bytes) * (shape.ranks - 1);
}
// The last round needs what it sends, and a NIC takes all blocks.
Picoseconds doubling_allgather(const Model& model, const CallShape& shape) {
  Picoseconds end = model.hop((shape.ranks - 1) * shape.bytes);
  for (uint64_t distance = 1; distance < shape.ranks; distance *= 2) {
    const uint64_t blocks = std::min<uint64_t>(distance, shape.ranks - distance);
    Picoseconds complete = model.hop(blocks * shape.bytes);
    for (uint64_t before = 1; before < blocks; before *= 2) complete += model.hop(before * shape.bytes);
    end = std::max(end, complete);
  }
  return end;
}
Picoseconds recursive_doubling_allgather(const Model& model, const CallShape& shape) {
  const Fold fold(shape.ranks);
  if (fold.beyond == 0) return doubling_allgather(model, shape);
  return fold.end_time(
      model, model.hop(shape.bytes), [&](uint32_t round) { return fold.blocks(round) * shape.bytes; },
      (shape.ranks - 1) * shape.bytes);
}
// A block goes in the rounds of the bits of its distance, and before a round its blocks are copied to where they lie
// together. The largest distances, those that begin as P - 1 does and have ones behind, have the most rounds.
Picoseconds bruck_alltoall(const Model& model, const CallShape& shape) {
  std::vector<Picoseconds> rounds;
  Picoseconds nic_time = 0;  // the time in which one NIC sends all that it has
  for (uint64_t distance = 1; distance < shape.ranks; distance *= 2) {
    const uint64_t in_whole_groups = shape.ranks / (2 * distance) * distance;
    const uint64_t rest = shape.ranks % (2 * distance);
    const uint64_t blocks = in_whole_groups + (rest > distance ? rest - distance : 0);
    rounds.push_back(model.hop(blocks * shape.bytes));
    nic_time += distance * 2 < shape.ranks ? model.take(blocks * shape.bytes) : model.hop(blocks * shape.bytes);
    if (blocks > 1) rounds.back() += model.G.ps_up(shape.bytes) * blocks + model.L_ps + model.match(shape.bytes);
  }
  Picoseconds longest = nic_time;
  for (size_t bit = 0; bit <= rounds.size(); ++bit) {
    if ((shape.ranks >> bit & 1) == 0) continue;
    const uint64_t distance = (uint64_t{shape.ranks} >> bit << bit) - 1;
    Picoseconds sum = 0;
    for (size_t round = 0; round < rounds.size(); ++round) sum += (distance >> round & 1) != 0 ? rounds[round] : 0;
    longest = std::max(longest, sum);
  }
  return longest;
}

}  // namespace spinloom::collective::forms
