// Collective operations whose partners are a power of two apart: recursive doubling and recursive halving.
#include <bit>
#include <optional>

#include "collective/algorithms.hpp"

namespace spinloom::collective::algorithms {
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
  [[nodiscard]] bool begin(Reduction& reduction, Rounds& rounds) const {
    if (is_out()) {
      rounds.send(rank + 1, reduction.own);
      rounds.next();
      rounds.receive(rank + 1, reduction.sum);
      return false;
    }
    if (is_paired()) {
      reduction.receive(rank - 1, true, rounds);
      rounds.next();
    }
    return true;
  }
  void end(const Reduction& reduction, Rounds& rounds) const {
    if (is_paired()) rounds.send(rank - 1, reduction.sum);
    reduction.end_alone(rounds);
  }
};

// The first of the `mask` blocks, a power of two, that are those of places which differ in lower bits only.
uint32_t first_of(uint32_t place, uint32_t mask) { return place & ~(mask - 1); }

// Half of what a place still has goes to its partner, again and again; the other half gets the partner's. `part_of`:
// of blocks from one on, of all data that lie as `all`. The last sum lands at `last`.
template <class RankOf, class PartOf>
void halve(uint32_t place, uint32_t power, const RankOf& rank_of, const PartOf& part_of, Reduction& reduction,
           std::optional<Place> last, Rounds& rounds) {
  for (uint32_t mask = power / 2; mask > 0; mask /= 2) {
    const auto of = [&](const Part& all, uint32_t whose) { return part_of(all, first_of(whose, mask), mask); };
    const Part held = of(reduction.held(), place);
    Reduction kept(held, mask == 1 && last ? *last : of(reduction.sum, place).place, reduction.free);
    rounds.send(rank_of(place ^ mask), of(reduction.held(), place ^ mask));
    kept.receive(rank_of(place ^ mask), (place & mask) != 0, rounds);
    rounds.next();
    reduction.free = kept.free;
    reduction.has = true;
  }
}

// All that a place has goes to its partner, again and again. `first`: what it has before, wherever that lies.
template <class RankOf, class PartOf>
void double_up(uint32_t place, uint32_t power, const RankOf& rank_of, const PartOf& part_of, const Part& first,
               Rounds& rounds) {
  for (uint32_t mask = 1; mask < power; mask *= 2) {
    rounds.send(rank_of(place ^ mask), mask == 1 ? first : part_of(first_of(place, mask), mask));
    rounds.receive(rank_of(place ^ mask), part_of(first_of(place ^ mask, mask), mask));
    rounds.next();
  }
}

uint32_t same(uint32_t place) { return place; }

}  // namespace

// What comes from a place whose bit is not set is lower.
void recursive_doubling_allreduce(const Collective& call, Rounds& rounds) {
  Reduction reduction(data(call.sends), data(call.receives).place);
  const Fold fold(call);
  if (!fold.begin(reduction, rounds)) return;
  for (uint32_t bit = 1; bit < fold.power; bit *= 2) {
    const uint32_t peer = fold.rank_of(fold.place() ^ bit);
    rounds.send(peer, reduction.held());
    reduction.receive(peer, (fold.place() & bit) != 0, rounds);
    rounds.next();
  }
  fold.end(reduction, rounds);
}

// A reduction by halving leaves each place its share, doubling gives it to all (Rabenseifner 2004).
void rabenseifner_allreduce(const Collective& call, Rounds& rounds) {
  Reduction reduction(data(call.sends), data(call.receives).place);
  const Fold fold(call);
  if (!fold.begin(reduction, rounds)) return;
  const auto rank_of = [&](uint32_t place) { return fold.rank_of(place); };
  const auto some = [&](const Part& all, uint32_t first, uint32_t count) {
    return shares(all, fold.power, first, count, call.element_bytes);
  };
  const auto sums = [&](uint32_t first, uint32_t count) { return some(reduction.sum, first, count); };
  halve(fold.place(), fold.power, rank_of, some, reduction, {}, rounds);
  double_up(fold.place(), fold.power, rank_of, sums, sums(fold.place(), 1), rounds);
  fold.end(reduction, rounds);
}

void recursive_doubling_allgather(const Collective& call, Rounds& rounds) {
  const Part own = call.in_place ? block(call.receives, call.rank) : data(call.sends);
  const auto blocks = [&](uint32_t first, uint32_t count) { return times(block(call.receives, first), count); };
  if (!call.in_place) rounds.copy(own, block(call.receives, call.rank));
  double_up(call.rank, call.size, same, blocks, own, rounds);
}

// Sums of all blocks that a rank still has are kept apart; that of its own one is received.
void recursive_halving_reduce_scatter(const Collective& call, Rounds& rounds) {
  const uint64_t bytes = data(call.sends).bytes;
  const auto blocks = [&](const Part& all, uint32_t first, uint32_t count) {
    return slice(all, bytes * first, bytes * count);
  };
  Reduction reduction(times(data(call.sends), call.size), {.area = Area::work}, bytes * call.size);
  halve(call.rank, call.size, same, blocks, reduction, data(call.receives).place, rounds);
  if (call.size == 1 && !call.in_place) rounds.copy(data(call.sends), data(call.receives));
}

}  // namespace spinloom::collective::algorithms
