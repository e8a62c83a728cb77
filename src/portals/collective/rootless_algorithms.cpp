// Collective operations in which all ranks do alike.
#include <bit>

#include "portals/collective/algorithms.hpp"

namespace spinloom::collective::algorithms {
namespace {

// In v and w forms no rank sends an empty block. Its receiver knows that the block is empty, too.
bool is_regular(const Collective& call) { return call.receives.size() <= 1; }
void send_some(const Collective& call, uint32_t peer, const Part& part, Rounds& rounds) {
  if (is_regular(call) || part.bytes != 0) rounds.send(peer, part);
}
void receive_some(const Collective& call, uint32_t peer, const Part& part, Rounds& rounds) {
  if (is_regular(call) || part.bytes != 0) rounds.receive(peer, part);
}

const std::vector<Part>& sent(const Collective& call) { return call.in_place ? call.receives : call.sends; }

void copy_own(const Collective& call, Rounds& rounds, const Part& from) {
  if (!call.in_place) rounds.copy(from, block(call.receives, call.rank));
}

// The places where the messages of an all-to-all land. While the blocks that they replace are still being sent, the
// messages wait in memory of the algorithm's own.
struct Landings {
  const Collective& call;
  uint64_t free = 0;
  std::vector<Copy> last = {};

  Part of(uint32_t peer) {
    const Part part = block(call.receives, peer);
    if (!lands_on_operand(call)) return part;
    const Part landing = work(part.bytes, free);
    free += part.bytes;
    last.push_back({landing, part});
    return landing;
  }
  void end(Rounds& rounds) const {
    if (!last.empty()) rounds.next();
    for (const Copy& one : last) rounds.copy(one.from, one.to);
  }
};

// Adds the messages of Bruck's all-to-all for a call that says no places.
void bruck_messages(const Collective& call, const Part& each, Rounds& rounds) {
  for (uint64_t distance = 1; distance < call.size; distance *= 2) {
    uint64_t blocks = 0;
    for (uint32_t number = 1; number < call.size; ++number) blocks += (number & distance) != 0;
    rounds.send(after(call, distance), times(each, blocks));
    rounds.receive(before(call, distance), times(each, blocks));
    rounds.next();
  }
  copy_own(call, rounds, block(sent(call), call.rank));
}

// Adds a copy. If its data lie behind those of the last copy at both ends, it extends the last copy.
void add_copy(const Copy& copy, std::vector<Copy>& copies) {
  const auto follows = [](const Part& first, const Part& then) {
    return first.place.area == then.place.area && first.place.at + first.bytes == then.place.at;
  };
  if (copies.empty() || !follows(copies.back().from, copy.from) || !follows(copies.back().to, copy.to)) {
    copies.push_back(copy);
    return;
  }
  copies.back().from.bytes += copy.from.bytes;
  copies.back().to.bytes += copy.to.bytes;
}

}  // namespace

void ring_allgather(const Collective& call, Rounds& rounds) {
  copy_own(call, rounds, data(call.sends));
  rounds.next();
  for (uint32_t step = 0; step + 1 < call.size; ++step) {
    Part next = block(call.receives, before(call, step));
    if (step == 0 && !call.in_place) next.place = data(call.sends).place;  // need not wait for the copy
    rounds.send(after(call, 1), next);
    rounds.receive(before(call, 1), block(call.receives, before(call, step + 1)));
    rounds.next();
  }
}

// After a round of distance d a rank has 2 d blocks (or all): its own one and those of the next ranks.
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
    receive_some(call, before(call, distance), block(call.receives, before(call, distance)), rounds);
    send_some(call, after(call, distance), own, rounds);
  }
  copy_own(call, rounds, own);
}

void pairwise_alltoall(const Collective& call, Rounds& rounds) {
  Landings landings{call};
  copy_own(call, rounds, block(sent(call), call.rank));
  rounds.next();
  for (uint32_t distance = 1; distance < call.size; ++distance) {
    send_some(call, after(call, distance), block(sent(call), after(call, distance)), rounds);
    receive_some(call, before(call, distance), landings.of(before(call, distance)), rounds);
    rounds.next();
  }
  landings.end(rounds);
}

void linear_alltoall(const Collective& call, Rounds& rounds) {
  Landings landings{call};
  for (uint32_t distance = 1; distance < call.size; ++distance) {
    receive_some(call, before(call, distance), landings.of(before(call, distance)), rounds);
    send_some(call, after(call, distance), block(sent(call), after(call, distance)), rounds);
  }
  copy_own(call, rounds, block(sent(call), call.rank));
  landings.end(rounds);
}

// A block moves by 2^k places for each bit k that is set in its distance, several blocks at a time. Blocks that move
// together are packed, the farthest first: so the last ones come in the order in which they are received.
void bruck_alltoall(const Collective& call, Rounds& rounds) {
  const Part each = block(call.receives, 0);
  if (each.place.area != Area::receive) return bruck_messages(call, each, rounds);
  std::vector<Part> at;  // by number: the block for the rank so many places on; at the end, that from so many back
  for (uint32_t number = 0; number < call.size; ++number) at.push_back(block(sent(call), after(call, number)));
  uint64_t free = 0;
  for (uint64_t distance = 1; distance < call.size; distance *= 2) {
    std::vector<Copy> packing;
    uint64_t blocks = 0;
    for (uint32_t number = call.size - 1; number > 0; --number) {
      if ((number & distance) == 0) continue;
      add_copy({at[number], moved(each, work(each.bytes, free + blocks++ * each.bytes).place)}, packing);
    }
    Part sends = times(each, blocks);
    sends.place = packing.size() == 1 ? packing.front().from.place : packing.front().to.place;
    if (packing.size() > 1) {
      free += sends.bytes;
      for (const Copy& one : packing) rounds.copy(one.from, one.to);
      rounds.next();
    }
    const bool ends_here = distance * 2 >= call.size && !lands_on_operand(call);
    const Part lands = ends_here ? around(block(call.receives, after(call, 1)), blocks, call.size)
                                 : moved(sends, work(sends.bytes, free).place);
    if (!ends_here) free += sends.bytes;
    rounds.send(after(call, distance), sends);
    rounds.receive(before(call, distance), lands);
    rounds.next();
    blocks = 0;
    for (uint32_t number = call.size - 1; number > 0; --number) {
      if ((number & distance) != 0) at[number] = slice(lands, blocks++ * each.bytes, each.bytes);
    }
    if (ends_here) at.resize(distance);
  }
  copy_own(call, rounds, at.front());
  std::vector<Copy> unpacking;
  for (uint32_t number = static_cast<uint32_t>(at.size()) - 1; number > 0; --number) {
    add_copy({at[number], block(call.receives, before(call, number))}, unpacking);
  }
  for (const Copy& one : unpacking) rounds.copy(one.from, one.to);
}

// A reduction of each share on its way around the ring, and a second way around for the result. Only the share whose
// sum ends here has it where the result is.
void ring_allreduce(const Collective& call, Rounds& rounds) {
  if (call.size == 1) return reduce_alone(call, rounds);
  const Outcome outcome(call);
  const auto of = [&](const Part& all, uint32_t rank) { return shares(all, call.size, rank, 1, call.element_bytes); };
  uint64_t free = outcome.free;
  Part held = of(outcome.own, call.rank);
  for (uint32_t step = 0; step + 1 < call.size; ++step) {
    const uint32_t whose = before(call, step + 1);
    const Part share = of(outcome.own, whose);
    const bool ends_here = step + 2 == call.size;
    const Place place = ends_here ? of(outcome.result, whose).place : work(share.bytes, free).place;
    if (!ends_here) free += share.bytes;
    Reduction reduction(share, place, free);
    rounds.send(after(call, 1), held);
    reduction.receive(before(call, 1), true, rounds);
    rounds.next();
    held = reduction.held();
    free = reduction.free;
  }
  for (uint32_t step = 0; step + 1 < call.size; ++step) {
    rounds.send(after(call, 1), of(outcome.result, before(call, step + call.size - 1)));
    rounds.receive(before(call, 1), of(outcome.result, before(call, step)));
    rounds.next();
  }
  outcome.end(rounds);
}

// In place all operands lie where the first block's sum comes.
void pairwise_reduce_scatter(const Collective& call, Rounds& rounds) {
  const Part own = block(call.sends, call.rank);
  const Part received = moved(own, data(call.receives).place);
  const bool apart = lands_on_operand(call) && call.size > 1;
  Reduction reduction(own, apart ? Place{.area = Area::work} : received.place, apart ? own.bytes : 0);
  for (uint32_t distance = 1; distance < call.size; ++distance) {
    rounds.send(after(call, distance), block(call.sends, after(call, distance)));
    reduction.receive(before(call, distance), before(call, distance) < call.rank, rounds);
    rounds.next();
  }
  if (apart) rounds.copy(reduction.sum, received);
  if (!call.in_place) reduction.end_alone(rounds);
}

}  // namespace spinloom::collective::algorithms
