#include "portals/collective/fault_tolerant.hpp"

#include <algorithm>

namespace spinloom::collective {

std::vector<uint32_t> binomial_graph_neighbors(const Position& position) {
  const uint64_t size = position.size;
  std::vector<uint32_t> found;
  for (uint64_t distance = 1; distance < size; distance *= 2) {
    found.push_back(static_cast<uint32_t>((position.rank + distance) % size));
    found.push_back(static_cast<uint32_t>((position.rank + size - distance) % size));
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::erase(found, position.rank);
  return found;
}

Graph fault_tolerant_bcast(uint8_t* data, uint8_t* memory, uint64_t bytes, const Position& position) {
  Graph graph;
  if (bytes == 0) return graph;
  graph.memory_bytes = bytes;
  const bool is_root = position.rank == position.root;
  const Pieces user = {{data, bytes}};
  const Pieces landing = {{memory, bytes}};
  const std::vector<uint32_t> neighbors = binomial_graph_neighbors(position);
  std::vector<uint32_t> came;
  for (const uint32_t peer : neighbors) {
    if (is_root) break;
    came.push_back(static_cast<uint32_t>(graph.operations.size()));
    graph.operations.push_back({.what = Does::receive, .peer = peer, .to = landing, .optional = true});
  }
  const auto copy = static_cast<uint32_t>(graph.operations.size());
  graph.operations.push_back(
      {.what = Does::copy, .from = is_root ? user : landing, .to = is_root ? landing : user, .any = came});
  for (const uint32_t peer : neighbors) {
    if (peer == position.root) continue;
    Vertex send{.what = Does::send, .peer = peer, .from = landing, .optional = true, .any = came};
    if (is_root) send.all = {copy};
    graph.operations.push_back(std::move(send));
  }
  return graph;
}

}  // namespace spinloom::collective
