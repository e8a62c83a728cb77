// Collective operations among neighbours.
#include "portals/collective/algorithms.hpp"

namespace spinloom::collective::algorithms {
namespace {

// On a Cartesian grid of two ranks both neighbours of a dimension are the same one: what goes to the lower neighbour
// comes from the upper one. Receives change places in pairs, so that messages meet theirs in order. `sent`: to each.
template <class Sent>
void with_neighbors(const Collective& call, bool sends_empty, const Sent& sent, Rounds& rounds) {
  for (size_t number = 0; number < call.sources.size(); ++number) {
    const size_t source = call.is_grid && (number ^ 1) < call.sources.size() ? number ^ 1 : number;
    if (call.sources[source] < 0) continue;
    const Part part = block(call.receives, static_cast<uint32_t>(source));
    if (sends_empty || part.bytes != 0) rounds.receive(static_cast<uint32_t>(call.sources[source]), part);
  }
  for (size_t number = 0; number < call.destinations.size(); ++number) {
    if (call.destinations[number] < 0) continue;
    const Part part = sent(static_cast<uint32_t>(number));
    if (sends_empty || part.bytes != 0) rounds.send(static_cast<uint32_t>(call.destinations[number]), part);
  }
}

}  // namespace

void neighbor_alltoall(const Collective& call, Rounds& rounds) {
  with_neighbors(call, true, [&](uint32_t number) { return block(call.sends, number); }, rounds);
}
void neighbor_alltoallv(const Collective& call, Rounds& rounds) {
  with_neighbors(call, false, [&](uint32_t number) { return block(call.sends, number); }, rounds);
}
void neighbor_allgather(const Collective& call, Rounds& rounds) {
  with_neighbors(call, true, [&](uint32_t) { return data(call.sends); }, rounds);
}
void neighbor_allgatherv(const Collective& call, Rounds& rounds) {
  with_neighbors(call, false, [&](uint32_t) { return data(call.sends); }, rounds);
}

}  // namespace spinloom::collective::algorithms
