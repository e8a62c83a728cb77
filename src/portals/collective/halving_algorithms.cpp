// Collective operations whose partners are a power of two apart: recursive doubling and recursive halving.
#include <bit>
#include <optional>

#include "portals/collective/algorithms.hpp"

namespace spinloom::collective::algorithms {
namespace {

// Ranks beyond a power of two leave their part with a neighbour first and get the result from it at the end. The places
// of the others ascend with their ranks; the blocks of a place are its own and that of its neighbour before.
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
  [[nodiscard]] uint32_t first_block(uint32_t place) const { return place < beyond ? 2 * place : place + beyond; }

  // Adds all operations of a rank that is out.
  void exchange_as_outsider(const Part& own, const Part& result, Rounds& rounds) const {
    rounds.send(rank + 1, own);
    rounds.next();
    rounds.receive(rank + 1, result);
  }
  void begin(Reduction& reduction, Rounds& rounds) const {
    if (!is_paired()) return;
    reduction.receive(rank - 1, true, rounds);
    rounds.next();
  }
  void end(const Part& result, Rounds& rounds) const {
    if (is_paired()) rounds.send(rank - 1, result);
  }
};

// Returns the first of the `mask` places (a power of two) that differ from `place` in the bits below `mask` only.
uint32_t first_of(uint32_t place, uint32_t mask) { return place & ~(mask - 1); }

// Half of the blocks that a place still has goes to its partner, again and again; the other half is combined with the
// partner's. part_of(all, first, count) returns the blocks of `count` places from `first` on, of data that lie as
// `all`. The last sum lands at `last`, if there is such a place.
template <class RankOf, class PartOf>
void halve(uint32_t place, uint32_t power, const RankOf& rank_of, const PartOf& part_of, Reduction& reduction,
           std::optional<Place> last, Rounds& rounds) {
  for (uint32_t mask = power / 2; mask > 0; mask /= 2) {
    const auto part_at = [&](const Part& all, uint32_t owner) { return part_of(all, first_of(owner, mask), mask); };
    const Part own_half = part_at(reduction.partial(), place);
    Reduction halved(own_half, mask == 1 && last ? *last : part_at(reduction.sum, place).place, reduction.free);
    rounds.send(rank_of(place ^ mask), part_at(reduction.partial(), place ^ mask));
    halved.receive(rank_of(place ^ mask), (place & mask) != 0, rounds);
    rounds.next();
    reduction.free = halved.free;
    reduction.has_received = true;
  }
}

// All blocks that a place has go to its partner, again and again. `first`: the blocks that it has at first, wherever
// they lie. part_of(first, count) returns where the blocks of `count` places lie in the result.
template <class RankOf, class PartOf>
void double_up(uint32_t place, uint32_t power, const RankOf& rank_of, const PartOf& part_of, const Part& first,
               Rounds& rounds) {
  for (uint32_t mask = 1; mask < power; mask *= 2) {
    rounds.send(rank_of(place ^ mask), mask == 1 ? first : part_of(first_of(place, mask), mask));
    rounds.receive(rank_of(place ^ mask), part_of(first_of(place ^ mask, mask), mask));
    rounds.next();
  }
}

}  // namespace

// In each step, the place whose bit is not set has the operands of lower ranks.
void recursive_doubling_allreduce(const Collective& call, Rounds& rounds) {
  if (call.size == 1) return reduce_alone(call, rounds);
  const Fold fold(call);
  if (fold.is_out()) {
    const Outcome outcome(call);
    fold.exchange_as_outsider(outcome.own, outcome.result, rounds);
    return outcome.end(rounds);
  }
  Reduction reduction(data(call.sends), data(call.receives).place);
  fold.begin(reduction, rounds);
  for (uint32_t bit = 1; bit < fold.power; bit *= 2) {
    const uint32_t peer = fold.rank_of(fold.place() ^ bit);
    rounds.send(peer, reduction.partial());
    reduction.receive(peer, (fold.place() & bit) != 0, rounds);
    rounds.next();
  }
  fold.end(reduction.sum, rounds);
}

// A reduction by halving leaves each place its share, doubling gives it to all (Rabenseifner 2004).
void rabenseifner_allreduce(const Collective& call, Rounds& rounds) {
  if (call.size == 1) return reduce_alone(call, rounds);
  const Outcome outcome(call);
  const Fold fold(call);
  if (fold.is_out()) {
    fold.exchange_as_outsider(outcome.own, outcome.result, rounds);
    return outcome.end(rounds);
  }
  const auto rank_of = [&](uint32_t place) { return fold.rank_of(place); };
  const auto shares_of = [&](const Part& all, uint32_t first, uint32_t count) {
    return shares(all, fold.power, first, count, call.element_bytes);
  };
  const auto results = [&](uint32_t first, uint32_t count) { return shares_of(outcome.result, first, count); };
  const Part mine = results(fold.place(), 1);
  Reduction reduction(outcome.own, {.at = outcome.free, .area = Area::work}, outcome.free + outcome.own.bytes);
  fold.begin(reduction, rounds);
  halve(fold.place(), fold.power, rank_of, shares_of, reduction, mine.place, rounds);
  double_up(fold.place(), fold.power, rank_of, results, mine, rounds);
  fold.end(outcome.result, rounds);
  outcome.end(rounds);
}

// A rank that is out has its own block already, and receives all others.
void recursive_doubling_allgather(const Collective& call, Rounds& rounds) {
  const Part mine = block(call.receives, call.rank);
  const Part own = call.in_place ? mine : data(call.sends);
  const auto others = [&](uint32_t rank) {
    return wrapped_blocks(block(call.receives, (rank + 1) % call.size), call.size - 1, call.size);
  };
  const Fold fold(call);
  if (!call.in_place) rounds.copy(own, mine);
  if (fold.is_out()) return fold.exchange_as_outsider(own, others(call.rank), rounds);
  const auto rank_of = [&](uint32_t place) { return fold.rank_of(place); };
  const auto blocks = [&](uint32_t first, uint32_t count) {
    const uint32_t begin = fold.first_block(first);
    return times(block(call.receives, begin), fold.first_block(first + count) - begin);
  };
  if (fold.is_paired()) {
    rounds.receive(call.rank - 1, block(call.receives, call.rank - 1));
    rounds.next();
  }
  double_up(fold.place(), fold.power, rank_of, blocks, fold.is_paired() ? blocks(fold.place(), 1) : own, rounds);
  if (fold.is_paired()) rounds.send(call.rank - 1, others(call.rank - 1));
}

// Sums of the blocks that a rank still has are kept in work memory; the sum of its own block ends where the result is
// received.
void recursive_halving_reduce_scatter(const Collective& call, Rounds& rounds) {
  const Part own = block(call.sends, call.rank);
  Part received = at_place(own, data(call.receives).place);
  if (call.size == 1) {
    if (!call.in_place) rounds.copy(own, received);
    return;
  }
  std::vector<uint64_t> begins(1);
  for (uint32_t rank = 0; rank < call.size; ++rank) {
    begins.push_back(begins.back() + block(call.sends, rank).bytes);
  }
  const Part all = packed(begins.back(), data(call.sends).place);
  const Fold fold(call);
  const bool needs_work_memory = lands_on_operand(call);
  if (fold.is_out()) {
    const Part landing = needs_work_memory ? at_place(received, {.area = Area::work}) : received;
    fold.exchange_as_outsider(all, landing, rounds);
    rounds.next();
    if (needs_work_memory) rounds.copy(landing, received);
    return;
  }
  const auto rank_of = [&](uint32_t place) { return fold.rank_of(place); };
  const auto blocks = [&](const Part& whole, uint32_t first, uint32_t count) {
    const uint64_t begin = begins[fold.first_block(first)];
    return slice(whole, begin, begins[fold.first_block(first + count)] - begin);
  };
  Reduction reduction(all, {.area = Area::work}, all.bytes);
  fold.begin(reduction, rounds);
  const bool lands_in_result = !needs_work_memory && !fold.is_paired();
  halve(fold.place(), fold.power, rank_of, blocks, reduction,
        lands_in_result ? std::optional(received.place) : std::nullopt, rounds);
  if (lands_in_result) return;
  const Part sums = blocks(reduction.sum, fold.place(), 1);
  rounds.copy(slice(sums, sums.bytes - own.bytes, own.bytes), received);
  fold.end(slice(sums, 0, sums.bytes - own.bytes), rounds);
}

}  // namespace spinloom::collective::algorithms
