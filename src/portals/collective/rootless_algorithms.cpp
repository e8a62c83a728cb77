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

const std::vector<Part>& parts_to_send(const Collective& call) { return call.in_place ? call.receives : call.sends; }

void copy_own(const Collective& call, Rounds& rounds, const Part& from) {
  if (!call.in_place) rounds.copy(from, block(call.receives, call.rank));
}

// The places where the messages of an all-to-all land. While the blocks that they replace are still being sent, the
// messages wait in memory of the algorithm's own.
struct Landings {
  const Collective& call;
  uint64_t free = 0;
  std::vector<Copy> final_copies = {};

  Part landing_for(uint32_t peer) {
    const Part part = block(call.receives, peer);
    if (!lands_on_operand(call)) return part;
    const Part landing = work(part.bytes, free);
    free += part.bytes;
    final_copies.push_back({landing, part});
    return landing;
  }
  void end(Rounds& rounds) const {
    if (!final_copies.empty()) rounds.next();
    for (const Copy& one : final_copies) rounds.copy(one.from, one.to);
  }
};

// Adds the messages of Bruck's all-to-all for a call that says no places.
void bruck_messages(const Collective& call, const Part& each, Rounds& rounds) {
  for (uint64_t distance = 1; distance < call.size; distance *= 2) {
    uint64_t blocks = 0;
    for (uint32_t number = 1; number < call.size; ++number) blocks += (number & distance) != 0;
    rounds.send(rank_after(call, distance), times(each, blocks));
    rounds.receive(rank_before(call, distance), times(each, blocks));
    rounds.next();
  }
  copy_own(call, rounds, block(parts_to_send(call), call.rank));
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
    Part next = block(call.receives, rank_before(call, step));
    if (step == 0 && !call.in_place) next.place = data(call.sends).place;  // need not wait for the copy
    rounds.send(rank_after(call, 1), next);
    rounds.receive(rank_before(call, 1), block(call.receives, rank_before(call, step + 1)));
    rounds.next();
  }
}

// After a round of distance d a rank has 2 d blocks (or all): its own one and those of the next ranks.
void bruck_allgather(const Collective& call, Rounds& rounds) {
  copy_own(call, rounds, data(call.sends));
  for (uint32_t distance = 1; distance < call.size; distance *= 2) {
    const uint32_t blocks = std::min(distance, call.size - distance);
    const auto from = [&](uint32_t rank) { return wrapped_blocks(block(call.receives, rank), blocks, call.size); };
    rounds.send(rank_before(call, distance), distance == 1 && !call.in_place ? data(call.sends) : from(call.rank));
    rounds.receive(rank_after(call, distance), from(rank_after(call, distance)));
    rounds.next();
  }
}

void linear_allgather(const Collective& call, Rounds& rounds) {
  const Part own = call.in_place ? block(call.receives, call.rank) : data(call.sends);
  for (uint32_t distance = 1; distance < call.size; ++distance) {
    receive_some(call, rank_before(call, distance), block(call.receives, rank_before(call, distance)), rounds);
    send_some(call, rank_after(call, distance), own, rounds);
  }
  copy_own(call, rounds, own);
}

void pairwise_alltoall(const Collective& call, Rounds& rounds) {
  Landings landings{call};
  copy_own(call, rounds, block(parts_to_send(call), call.rank));
  rounds.next();
  for (uint32_t distance = 1; distance < call.size; ++distance) {
    send_some(call, rank_after(call, distance), block(parts_to_send(call), rank_after(call, distance)), rounds);
    receive_some(call, rank_before(call, distance), landings.landing_for(rank_before(call, distance)), rounds);
    rounds.next();
  }
  landings.end(rounds);
}

void linear_alltoall(const Collective& call, Rounds& rounds) {
  Landings landings{call};
  for (uint32_t distance = 1; distance < call.size; ++distance) {
    receive_some(call, rank_before(call, distance), landings.landing_for(rank_before(call, distance)), rounds);
    send_some(call, rank_after(call, distance), block(parts_to_send(call), rank_after(call, distance)), rounds);
  }
  copy_own(call, rounds, block(parts_to_send(call), call.rank));
  landings.end(rounds);
}

// A block moves by 2^k places for each bit k that is set in its distance, several blocks at a time. Blocks that move
// together are packed, the farthest first: so the last ones come in the order in which they are received.
void bruck_alltoall(const Collective& call, Rounds& rounds) {
  const Part each = block(call.receives, 0);
  if (each.place.area != Area::receive) return bruck_messages(call, each, rounds);
  std::vector<Part> at;  // the block for the rank at each distance on; at the end, that from the rank so far back
  for (uint32_t number = 0; number < call.size; ++number)
    at.push_back(block(parts_to_send(call), rank_after(call, number)));
  uint64_t free = 0;
  for (uint64_t distance = 1; distance < call.size; distance *= 2) {
    std::vector<Copy> packing;
    uint64_t blocks = 0;
    for (uint32_t number = call.size - 1; number > 0; --number) {
      if ((number & distance) == 0) continue;
      add_copy({at[number], at_place(each, work(each.bytes, free + blocks++ * each.bytes).place)}, packing);
    }
    Part sends = times(each, blocks);
    sends.place = packing.size() == 1 ? packing.front().from.place : packing.front().to.place;
    if (packing.size() > 1) {
      free += sends.bytes;
      for (const Copy& one : packing) rounds.copy(one.from, one.to);
      rounds.next();
    }
    const bool ends_here = distance * 2 >= call.size && !lands_on_operand(call);
    const Part lands = ends_here ? wrapped_blocks(block(call.receives, rank_after(call, 1)), blocks, call.size)
                                 : at_place(sends, work(sends.bytes, free).place);
    if (!ends_here) free += sends.bytes;
    rounds.send(rank_after(call, distance), sends);
    rounds.receive(rank_before(call, distance), lands);
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
    add_copy({at[number], block(call.receives, rank_before(call, number))}, unpacking);
  }
  for (const Copy& one : unpacking) rounds.copy(one.from, one.to);
}

// A reduction of each share on its way around the ring, and a second way around for the result. Only the share whose
// sum ends here has it where the result is.
void ring_allreduce(const Collective& call, Rounds& rounds) {
  if (call.size == 1) return reduce_alone(call, rounds);
  const Outcome outcome(call);
  const auto share_of = [&](const Part& all, uint32_t rank) {
    return shares(all, call.size, rank, 1, call.element_bytes);
  };
  uint64_t free = outcome.free;
  Part partial = share_of(outcome.own, call.rank);
  for (uint32_t step = 0; step + 1 < call.size; ++step) {
    const uint32_t whose = rank_before(call, step + 1);
    const Part share = share_of(outcome.own, whose);
    const bool ends_here = step + 2 == call.size;
    const Place place = ends_here ? share_of(outcome.result, whose).place : work(share.bytes, free).place;
    if (!ends_here) free += share.bytes;
    Reduction reduction(share, place, free);
    rounds.send(rank_after(call, 1), partial);
    reduction.receive(rank_before(call, 1), true, rounds);
    rounds.next();
    partial = reduction.partial();
    free = reduction.free;
  }
  for (uint32_t step = 0; step + 1 < call.size; ++step) {
    rounds.send(rank_after(call, 1), share_of(outcome.result, rank_before(call, step + call.size - 1)));
    rounds.receive(rank_before(call, 1), share_of(outcome.result, rank_before(call, step)));
    rounds.next();
  }
  outcome.end(rounds);
}

// In place all operands lie where the first block's sum comes.
void pairwise_reduce_scatter(const Collective& call, Rounds& rounds) {
  const Part own = block(call.sends, call.rank);
  const Part received = at_place(own, data(call.receives).place);
  const bool needs_work_memory = lands_on_operand(call) && call.size > 1;
  Reduction reduction(own, needs_work_memory ? Place{.area = Area::work} : received.place,
                      needs_work_memory ? own.bytes : 0);
  for (uint32_t distance = 1; distance < call.size; ++distance) {
    rounds.send(rank_after(call, distance), block(call.sends, rank_after(call, distance)));
    reduction.receive(rank_before(call, distance), rank_before(call, distance) < call.rank, rounds);
    rounds.next();
  }
  if (needs_work_memory) rounds.copy(reduction.sum, received);
  if (!call.in_place) reduction.end_alone(rounds);
}

}  // namespace spinloom::collective::algorithms
