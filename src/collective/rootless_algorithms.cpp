// Collective operations in which all ranks do alike.
#include <bit>

#include "collective/algorithms.hpp"

namespace spinloom::collective::algorithms {
namespace {

// Of v and w forms nobody sends what is empty; those who would receive it know that, too.
void send_some(Rounds& rounds, uint32_t peer, const Part& part, bool regular) {
  if (regular || part.bytes != 0) rounds.send(peer, part);
}
void receive_some(Rounds& rounds, uint32_t peer, const Part& part, bool regular) {
  if (regular || part.bytes != 0) rounds.receive(peer, part);
}

const std::vector<Part>& sent(const Collective& call) { return call.in_place ? call.receives : call.sends; }

bool is_regular(const Collective& call) { return call.receives.size() <= 1; }

void copy_own(const Collective& call, Rounds& rounds, const Part& from) {
  if (!call.in_place) rounds.copy(from, block(call.receives, call.rank));
}

}  // namespace

void ring_allgather(const Collective& call, Rounds& rounds) {
  copy_own(call, rounds, data(call.sends));
  rounds.next();
  for (uint32_t step = 0; step + 1 < call.size; ++step) {
    rounds.send(after(call, 1), block(call.receives, before(call, step)));
    rounds.receive(before(call, 1), block(call.receives, before(call, step + 1)));
    rounds.next();
  }
}

// A rank's blocks are its own and those behind it.
void bruck_allgather(const Collective& call, Rounds& rounds) {
  copy_own(call, rounds, data(call.sends));
  for (uint32_t distance = 1; distance < call.size; distance *= 2) {
    const uint32_t blocks = std::min(distance, call.size - distance);
    const auto from = [&](uint32_t rank) { return around(block(call.receives, rank), blocks, call.size); };
    rounds.send(before(call, distance), distance == 1 && !call.in_place ? data(call.sends) : from(call.rank));
    rounds.receive(after(call, distance), from(after(call, distance)));
    rounds.next();
  }
}

void linear_allgather(const Collective& call, Rounds& rounds) {
  const Part own = call.in_place ? block(call.receives, call.rank) : data(call.sends);
  for (uint32_t distance = 1; distance < call.size; ++distance) {
    receive_some(rounds, before(call, distance), block(call.receives, before(call, distance)), is_regular(call));
    send_some(rounds, after(call, distance), own, is_regular(call));
  }
  copy_own(call, rounds, own);
}

void pairwise_alltoall(const Collective& call, Rounds& rounds) {
  copy_own(call, rounds, block(sent(call), call.rank));
  rounds.next();
  for (uint32_t distance = 1; distance < call.size; ++distance) {
    send_some(rounds, after(call, distance), block(sent(call), after(call, distance)), is_regular(call));
    receive_some(rounds, before(call, distance), block(call.receives, before(call, distance)), is_regular(call));
    rounds.next();
  }
}

void linear_alltoall(const Collective& call, Rounds& rounds) {
  for (uint32_t distance = 1; distance < call.size; ++distance) {
    receive_some(rounds, before(call, distance), block(call.receives, before(call, distance)), is_regular(call));
    send_some(rounds, after(call, distance), block(sent(call), after(call, distance)), is_regular(call));
  }
  copy_own(call, rounds, block(sent(call), call.rank));
}

// Blocks go as far as the bits of their distance say, several at a time.
void bruck_alltoall(const Collective& call, Rounds& rounds) {
  const Part each = block(call.receives, 0);
  for (uint32_t distance = 1; distance < call.size; distance *= 2) {
    uint64_t blocks = 0;
    for (uint32_t number = 1; number < call.size; ++number) blocks += (number & distance) != 0;
    rounds.send(after(call, distance), times(each, blocks));
    rounds.receive(before(call, distance), times(each, blocks));
    rounds.next();
  }
  copy_own(call, rounds, block(sent(call), call.rank));
}

// A reduction of each share on its way around the ring, and a second way around for the result.
void ring_allreduce(const Collective& call, Rounds& rounds) {
  const Part own = data(call.sends);
  const Part sum = moved(own, data(call.receives).place);
  const auto of = [&](const Part& all, uint32_t rank) { return shares(all, call.size, rank, 1, call.element_bytes); };
  uint64_t free = 0;
  Part held = of(own, call.rank);
  for (uint32_t step = 0; step + 1 < call.size; ++step) {
    const uint32_t whose = before(call, step + 1);
    Reduction reduction(of(own, whose), of(sum, whose).place, free);
    rounds.send(after(call, 1), held);
    reduction.receive(before(call, 1), true, rounds);
    rounds.next();
    held = reduction.held();
    free = reduction.free;
  }
  for (uint32_t step = 0; step + 1 < call.size; ++step) {
    rounds.send(after(call, 1), of(sum, before(call, step + call.size - 1)));
    rounds.receive(before(call, 1), of(sum, before(call, step)));
    rounds.next();
  }
  if (call.size == 1) Reduction(own, sum.place).end_alone(rounds);
}

// All ranks receive the result: their sums are there, too.
void tree_allreduce(const Collective& call, Rounds& rounds) {
  Collective half = call;
  half.root = 0;
  const Place place = data(call.receives).place;
  reduce_up(half, place, 0, rounds);
  rounds.next();
  half.sends = half.receives = {moved(data(call.sends), place)};
  binomial_bcast(half, rounds);
}

void pairwise_reduce_scatter(const Collective& call, Rounds& rounds) {
  Reduction reduction(block(call.sends, call.rank), data(call.receives).place);
  for (uint32_t distance = 1; distance < call.size; ++distance) {
    rounds.send(after(call, distance), block(call.sends, after(call, distance)));
    reduction.receive(before(call, distance), before(call, distance) < call.rank, rounds);
    rounds.next();
  }
  if (!call.in_place) reduction.end_alone(rounds);
}

// After rounds of distances 1, 2, .. d a rank has the operands of the 2 d ranks up to itself.
void binomial_scan(const Collective& call, Rounds& rounds) {
  Reduction reduction(data(call.sends), data(call.receives).place);
  if (call.rank == 0 && !call.in_place) reduction.end_alone(rounds);
  for (uint32_t distance = 1; distance < call.size; distance *= 2) {
    if (distance < call.size - call.rank) rounds.send(call.rank + distance, reduction.held());
    if (distance <= call.rank) reduction.receive(call.rank - distance, true, rounds);
    rounds.next();
  }
}

void linear_scan(const Collective& call, Rounds& rounds) {
  Reduction reduction(data(call.sends), data(call.receives).place);
  if (call.rank == 0 && !call.in_place) reduction.end_alone(rounds);
  if (call.rank > 0) {
    reduction.receive(call.rank - 1, true, rounds);
    rounds.next();
  }
  if (call.rank + 1 < call.size) rounds.send(call.rank + 1, reduction.held());
}

// On a Cartesian grid of two ranks both neighbours of a dimension are the same one: what goes to the lower neighbour
// comes from the upper one. Receives change places in pairs, so that messages meet theirs in order.
void direct_neighbors(const Collective& call, Rounds& rounds) {
  const auto receive = [&](size_t number) {
    if (call.sources[number] < 0) return;
    const Part part = block(call.receives, static_cast<uint32_t>(number));
    receive_some(rounds, static_cast<uint32_t>(call.sources[number]), part, is_regular(call));
  };
  for (size_t number = 0; number < call.sources.size(); ++number) {
    receive(call.is_grid && (number ^ 1) < call.sources.size() ? number ^ 1 : number);
  }
  for (size_t number = 0; number < call.destinations.size(); ++number) {
    if (call.destinations[number] < 0) continue;
    const Part part = block(call.sends, static_cast<uint32_t>(number));
    send_some(rounds, static_cast<uint32_t>(call.destinations[number]), part, is_regular(call));
  }
}

}  // namespace spinloom::collective::algorithms
