// Collective operations in which all ranks do alike.
#include <bit>

#include "goal/algorithms.hpp"

namespace spinloom::goal::algorithms {
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
  copy_own(call, rounds, block(call.sends, 0));
  rounds.next();
  for (uint32_t step = 0; step + 1 < call.size; ++step) {
    rounds.send(after(call, 1), block(call.receives, before(call, step)));
    rounds.receive(before(call, 1), block(call.receives, before(call, step + 1)));
    rounds.next();
  }
}

void bruck_allgather(const Collective& call, Rounds& rounds) {
  const Part each = block(call.receives, 0);
  for (uint32_t distance = 1; distance < call.size; distance *= 2) {
    const Part blocks = times(each, std::min(distance, call.size - distance));
    rounds.send(before(call, distance), blocks);
    rounds.receive(after(call, distance), blocks);
    rounds.next();
  }
  copy_own(call, rounds, block(call.sends, 0));
}

void linear_allgather(const Collective& call, Rounds& rounds) {
  const Part own = call.in_place ? block(call.receives, call.rank) : block(call.sends, 0);
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
  const uint64_t bytes = block(call.sends, 0).bytes;
  for (uint32_t step = 0; step + 1 < call.size; ++step) {
    const Part received = share(bytes, call.size, before(call, step + 1));
    rounds.send(after(call, 1), share(bytes, call.size, before(call, step)));
    rounds.receive(before(call, 1), received);
    rounds.combine(received.bytes);
    rounds.next();
  }
  for (uint32_t step = 0; step + 1 < call.size; ++step) {
    rounds.send(after(call, 1), share(bytes, call.size, before(call, step + call.size - 1)));
    rounds.receive(before(call, 1), share(bytes, call.size, before(call, step)));
    rounds.next();
  }
}

void tree_allreduce(const Collective& call, Rounds& rounds) {
  Collective half = call;
  half.root = 0;
  binomial_reduce(half, rounds);
  rounds.next();
  half.receives = half.sends;
  binomial_bcast(half, rounds);
}

void pairwise_reduce_scatter(const Collective& call, Rounds& rounds) {
  const Part own = block(call.sends, call.rank);
  for (uint32_t distance = 1; distance < call.size; ++distance) {
    rounds.send(after(call, distance), block(call.sends, after(call, distance)));
    rounds.receive(before(call, distance), own);
    rounds.combine(own.bytes);
    rounds.next();
  }
}

void binomial_scan(const Collective& call, Rounds& rounds) {
  const Part part = block(call.sends, 0);
  for (uint32_t distance = 1; distance < call.size; distance *= 2) {
    if (distance < call.size - call.rank) rounds.send(call.rank + distance, part);
    if (distance <= call.rank) {
      rounds.receive(call.rank - distance, part);
      rounds.combine(part.bytes);
    }
    rounds.next();
  }
}

void linear_scan(const Collective& call, Rounds& rounds) {
  const Part part = block(call.sends, 0);
  if (call.rank > 0) {
    rounds.receive(call.rank - 1, part);
    rounds.combine(part.bytes);
    rounds.next();
  }
  if (call.rank + 1 < call.size) rounds.send(call.rank + 1, part);
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

}  // namespace spinloom::goal::algorithms
