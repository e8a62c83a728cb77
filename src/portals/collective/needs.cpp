#include "portals/collective/needs.hpp"

#include <algorithm>
#include <vector>

#include "portals/collective/plan.hpp"

namespace spinloom::collective {

void Needs::take_maxima(const Needs& other) {
  entries = std::max(entries, other.entries);
  triggered = std::max(triggered, other.triggered);
  counters = std::max(counters, other.counters);
  own_bytes = std::max(own_bytes, other.own_bytes);
}

Needs needs_of(const Graph& graph, uint64_t atomic_bytes) {
  std::vector<uint32_t> weights;
  for (const Vertex& one : graph.operations) {
    const uint64_t bytes = one.kind == VertexKind::combine ? bytes_of(one.to) : 0;
    weights.push_back(
        static_cast<uint32_t>(std::max<uint64_t>(1, bytes / atomic_bytes + (bytes % atomic_bytes != 0 ? 1 : 0))));
  }
  const Plan plan = plan_of(graph, weights, false);
  return {uint64_t{plan.descriptors} + plan.entries, plan.triggered, plan.counters(), graph.memory_bytes};
}

uint64_t callers_bytes(std::span<const Round> rounds) {
  return std::max(area_bytes_of(rounds, Area::send), area_bytes_of(rounds, Area::receive));
}

}  // namespace spinloom::collective
