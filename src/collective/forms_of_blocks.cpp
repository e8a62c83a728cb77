// Forms of operations in which each rank has a block.
#include "collective/form_parts.hpp"

namespace spinloom::collective::forms {

// A rank copies its own block meanwhile.
Picoseconds linear_scatter(const Model& model, const Question& ask) {
  return std::max(one_by_one(model.hop(ask.bytes), model.gap(ask.bytes), ask.ranks - 1), model.local(ask.bytes));
}
Picoseconds all_at_once(const Model& model, const Question& ask) {
  return std::max(one_by_one(model.hop(ask.bytes), model.take(ask.bytes), ask.ranks - 1), model.local(ask.bytes));
}
Picoseconds binomial_gather(const Model& model, const Question& ask) {
  return Tree(model, true, ask.bytes, [bytes = ask.bytes](uint64_t below) { return bytes * below; }).up(ask.ranks, {});
}
Picoseconds binomial_scatter(const Model& model, const Question& ask) {
  return Tree(model, true, ask.bytes, [bytes = ask.bytes](uint64_t below) { return bytes * below; }).down(ask.ranks);
}
Picoseconds ring_allgather(const Model& model, const Question& ask) {
  return std::max(model.local(ask.bytes), model.hop(ask.bytes) * (ask.ranks - 1));
}
// The first round sends where the block was, the others where it has been copied to. The last one needs what it sends, and
// a NIC takes all blocks.
Picoseconds doubling_allgather(const Model& model, const Question& ask) {
  const Picoseconds copied = model.local(ask.bytes);
  const auto begins = [&](uint64_t blocks) {  // of a round that sends so many
    Picoseconds has = 0;
    for (uint64_t before = 1; before < blocks; before *= 2) {
      has = std::max(has, before == 1 ? 0 : copied) + model.hop(before * ask.bytes);
    }
    return has;
  };
  Picoseconds ends = std::max(copied, model.hop((ask.ranks - 1) * ask.bytes));
  for (uint64_t distance = 1; distance < ask.ranks; distance *= 2) {
    const uint64_t blocks = std::min<uint64_t>(distance, ask.ranks - distance);
    ends = std::max(ends, std::max(begins(blocks), distance == 1 ? 0 : copied) + model.hop(blocks * ask.bytes));
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
    if (blocks > 1) rounds.back() += model.A.ps_up(ask.bytes) * blocks + model.a_ps;
  }
  Picoseconds most = std::max(sent, model.local(ask.bytes));
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
