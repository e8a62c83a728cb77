// Forms of operations in which each rank has a block.
#include "portals/collective/form_parts.hpp"

namespace spinloom::collective::forms {

// A rank copies its own block meanwhile, in a hop.
Picoseconds linear_scatter(const Model& model, const Question& ask) {
  return one_by_one(model.hop(ask.bytes), model.gap(ask.bytes), ask.ranks - 1);
}
Picoseconds all_at_once(const Model& model, const Question& ask) {
  return one_by_one(model.hop(ask.bytes), model.take(ask.bytes), ask.ranks - 1);
}
Picoseconds binomial_gather(const Model& model, const Question& ask) {
  return Tree(model, true, ask.bytes, [bytes = ask.bytes](uint64_t below) { return bytes * below; }).up(ask.ranks, {});
}
Picoseconds binomial_scatter(const Model& model, const Question& ask) {
  return Tree(model, true, ask.bytes, [bytes = ask.bytes](uint64_t below) { return bytes * below; }).down(ask.ranks);
}
Picoseconds ring_allgather(const Model& model, const Question& ask) { return model.hop(ask.bytes) * (ask.ranks - 1); }
// The last round needs what it sends, and a NIC takes all blocks.
Picoseconds doubling_allgather(const Model& model, const Question& ask) {
  Picoseconds ends = model.hop((ask.ranks - 1) * ask.bytes);
  for (uint64_t distance = 1; distance < ask.ranks; distance *= 2) {
    const uint64_t blocks = std::min<uint64_t>(distance, ask.ranks - distance);
    Picoseconds has = model.hop(blocks * ask.bytes);
    for (uint64_t before = 1; before < blocks; before *= 2) has += model.hop(before * ask.bytes);
    ends = std::max(ends, has);
  }
  return ends;
}
Picoseconds recursive_doubling_allgather(const Model& model, const Question& ask) {
  const Late late(ask.ranks);
  if (late.count == 0) return doubling_allgather(model, ask);
  return late.ends(
      model, model.hop(ask.bytes), [&](uint32_t round) { return late.blocks(round) * ask.bytes; },
      (ask.ranks - 1) * ask.bytes);
}
// A block goes in the rounds of the bits of its distance, and before a round its blocks are copied to where they lie
// together. The largest distances, those that begin as P - 1 does and have ones behind, have the most rounds.
Picoseconds bruck_alltoall(const Model& model, const Question& ask) {
  std::vector<Picoseconds> rounds;
  Picoseconds sent = 0;  // all of it, by one NIC
  for (uint64_t distance = 1; distance < ask.ranks; distance *= 2) {
    const uint64_t whole = ask.ranks / (2 * distance) * distance;
    const uint64_t rest = ask.ranks % (2 * distance);
    const uint64_t blocks = whole + (rest > distance ? rest - distance : 0);
    rounds.push_back(model.hop(blocks * ask.bytes));
    sent += distance * 2 < ask.ranks ? model.take(blocks * ask.bytes) : model.hop(blocks * ask.bytes);
    if (blocks > 1) rounds.back() += model.G.ps_up(ask.bytes) * blocks + model.L_ps + model.match(ask.bytes);
  }
  Picoseconds most = sent;
  for (size_t bit = 0; bit <= rounds.size(); ++bit) {
    if ((ask.ranks >> bit & 1) == 0) continue;
    const uint64_t distance = (uint64_t{ask.ranks} >> bit << bit) - 1;
    Picoseconds sum = 0;
    for (size_t round = 0; round < rounds.size(); ++round) sum += (distance >> round & 1) != 0 ? rounds[round] : 0;
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace spinloom::collective::forms
