// Collective operations whose partners are a power of two apart: recursive doubling and recursive halving.
#include <bit>

#include "goal/algorithms.hpp"

namespace spinloom::goal::algorithms {
namespace {

// Ranks beyond a power of two leave their part with a neighbour first and get the result from it at the end.
struct Fold {
  uint32_t rank;
  uint32_t power;
  uint32_t beyond;

  explicit Fold(const Collective& call)
      : rank(call.rank), power(std::bit_floor(call.size)), beyond(call.size - power) {}
  [[nodiscard]] bool is_paired() const { return rank < 2 * beyond; }
  [[nodiscard]] bool is_out() const { return is_paired() && rank % 2 == 0; }
  [[nodiscard]] uint32_t place() const { return is_paired() ? rank / 2 : rank - beyond; }
  [[nodiscard]] uint32_t rank_of(uint32_t place) const { return place < beyond ? 2 * place + 1 : place + beyond; }

  // False: all that this rank does.
  [[nodiscard]] bool begin(const Part& part, Rounds& rounds) const {
    if (is_out()) {
      rounds.send(rank + 1, part);
      rounds.next();
      rounds.receive(rank + 1, part);
      return false;
    }
    if (is_paired()) {
      rounds.receive(rank - 1, part);
      rounds.combine(part.bytes);
      rounds.next();
    }
    return true;
  }
  void end(const Part& part, Rounds& rounds) const {
    if (is_paired()) rounds.send(rank - 1, part);
  }
};

// The first of the `mask` blocks, a power of two, that are those of places which differ in lower bits only.
uint32_t first_of(uint32_t place, uint32_t mask) { return place & ~(mask - 1); }

// Half of what a place still has goes to its partner, again and again. `part_of`: of blocks from one on.
template <class RankOf, class PartOf>
void halve(uint32_t place, uint32_t power, const RankOf& rank_of, const PartOf& part_of, Rounds& rounds) {
  for (uint32_t mask = power / 2; mask > 0; mask /= 2) {
    const Part kept = part_of(first_of(place, mask), mask);
    rounds.send(rank_of(place ^ mask), part_of(first_of(place ^ mask, mask), mask));
    rounds.receive(rank_of(place ^ mask), kept);
    rounds.combine(kept.bytes);
    rounds.next();
  }
}

// All that a place has goes to its partner, again and again.
template <class RankOf, class PartOf>
void double_up(uint32_t place, uint32_t power, const RankOf& rank_of, const PartOf& part_of, Rounds& rounds) {
  for (uint32_t mask = 1; mask < power; mask *= 2) {
    rounds.send(rank_of(place ^ mask), part_of(first_of(place, mask), mask));
    rounds.receive(rank_of(place ^ mask), part_of(first_of(place ^ mask, mask), mask));
    rounds.next();
  }
}

uint32_t same(uint32_t place) { return place; }

}  // namespace

void recursive_doubling_allreduce(const Collective& call, Rounds& rounds) {
  const Part part = block(call.sends, 0);
  const Fold fold(call);
  if (!fold.begin(part, rounds)) return;
  for (uint32_t bit = 1; bit < fold.power; bit *= 2) {
    const uint32_t peer = fold.rank_of(fold.place() ^ bit);
    rounds.send(peer, part);
    rounds.receive(peer, part);
    rounds.combine(part.bytes);
    rounds.next();
  }
  fold.end(part, rounds);
}

// A reduction by halving leaves each place its share, doubling gives it to all (Rabenseifner 2004).
void rabenseifner_allreduce(const Collective& call, Rounds& rounds) {
  const Part part = block(call.sends, 0);
  const Fold fold(call);
  if (!fold.begin(part, rounds)) return;
  const auto rank_of = [&](uint32_t place) { return fold.rank_of(place); };
  const auto shares = [&](uint32_t first, uint32_t count) {
    return packed(share_begin(part.bytes, fold.power, first + count) - share_begin(part.bytes, fold.power, first));
  };
  halve(fold.place(), fold.power, rank_of, shares, rounds);
  double_up(fold.place(), fold.power, rank_of, shares, rounds);
  fold.end(part, rounds);
}

void recursive_doubling_allgather(const Collective& call, Rounds& rounds) {
  const auto blocks = [&](uint32_t, uint32_t count) { return times(block(call.receives, 0), count); };
  double_up(call.rank, call.size, same, blocks, rounds);
}

void recursive_halving_reduce_scatter(const Collective& call, Rounds& rounds) {
  const auto blocks = [&](uint32_t, uint32_t count) { return times(block(call.sends, 0), count); };
  halve(call.rank, call.size, same, blocks, rounds);
}

}  // namespace spinloom::goal::algorithms
