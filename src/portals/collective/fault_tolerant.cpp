#include "portals/collective/fault_tolerant.hpp"

#include <algorithm>

namespace spinloom::collective {

std::vector<uint32_t> binomial_graph_neighbors(const Position& position) {
  const uint64_t size = position.size;
  std::vector<uint32_t> neighbors;
  for (uint64_t distance = 1; distance < size; distance *= 2) {
    neighbors.push_back(static_cast<uint32_t>((position.rank + distance) % size));
    neighbors.push_back(static_cast<uint32_t>((position.rank + size - distance) % size));
  }
  std::sort(neighbors.begin(), neighbors.end());
  neighbors.erase(std::unique(neighbors.begin(), neighbors.end()), neighbors.end());
  std::erase(neighbors, position.rank);
  return neighbors;
}

Graph fault_tolerant_bcast(uint8_t* data, uint8_t* memory, uint64_t bytes, const Position& position) {
  Graph graph;
  if (bytes == 0) return graph;
  graph.memory_bytes = bytes;
  const bool is_root = position.rank == position.root;
  const Pieces user = {{data, bytes}};
  const Pieces landing = {{memory, bytes}};
  const std::vector<uint32_t> neighbors = binomial_graph_neighbors(position);
  std::vector<uint32_t> receives;
  for (const uint32_t peer : neighbors) {
    if (is_root) break;
    receives.push_back(static_cast<uint32_t>(graph.operations.size()));
    graph.operations.push_back({.kind = VertexKind::receive, .peer = peer, .to = landing, .optional = true});
  }
  const auto copy = static_cast<uint32_t>(graph.operations.size());
  graph.operations.push_back(
      {.kind = VertexKind::copy, .from = is_root ? user : landing, .to = is_root ? landing : user, .any = receives});
  for (const uint32_t peer : neighbors) {
    if (peer == position.root) continue;
    Vertex send{.kind = VertexKind::send, .peer = peer, .from = landing, .optional = true, .any = receives};
    if (is_root) send.all = {copy};
    graph.operations.push_back(std::move(send));
  }
  return graph;
}

}  // namespace spinloom::collective
