// Test edges - the senders and receivers of a collective operation that moves blocks.
//
// Contract: an Edge is a block that goes from one rank to another. Of operations among all ranks, the numbers of its
//   ends are the ranks of the other end; among neighbours they count destinations and sources.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/random.hpp"

namespace spinloom::collective::test {

struct Edge {
  uint32_t from;
  uint32_t from_number;  // its number among the sender's destinations
  uint32_t to;
  uint32_t to_number;  // its number among the receiver's sources
};

struct Connections {
  std::vector<Edge> edges;
  std::vector<std::vector<int32_t>> sources;  // each rank's sources, in operations among neighbours
  std::vector<std::vector<int32_t>> destinations;

  explicit Connections(uint32_t size) : sources(size), destinations(size) {}
};

inline Connections all_to_all(uint32_t size) {
  Connections connections(size);
  for (uint32_t from = 0; from < size; ++from) {
    for (uint32_t to = 0; to < size; ++to) connections.edges.push_back({from, to, to, from});
  }
  return connections;
}
inline Connections all_to_one(uint32_t size, uint32_t root) {
  Connections connections(size);
  for (uint32_t from = 0; from < size; ++from) connections.edges.push_back({from, root, root, from});
  return connections;
}
inline Connections one_to_all(uint32_t size, uint32_t root) {
  Connections connections(size);
  for (uint32_t to = 0; to < size; ++to) connections.edges.push_back({root, to, to, root});
  return connections;
}

// Makes any graph: a rank may be its own neighbour, and may be a neighbour of another rank several times.
inline Connections some_to_some(uint32_t size, Random& random) {
  Connections connections(size);
  for (uint64_t left = random.below(4 * size + 1); left > 0; --left) {
    const auto from = static_cast<uint32_t>(random.below(size));
    const auto to = static_cast<uint32_t>(random.below(size));
    std::vector<int32_t>& destinations = connections.destinations[from];
    std::vector<int32_t>& sources = connections.sources[to];
    connections.edges.push_back(
        {from, static_cast<uint32_t>(destinations.size()), to, static_cast<uint32_t>(sources.size())});
    destinations.push_back(static_cast<int32_t>(to));
    sources.push_back(static_cast<int32_t>(from));
  }
  return connections;
}

// Two dimensions, around the edges or not.
inline Connections grid(uint32_t size, Random& random) {
  Connections connections(size);
  auto rows = static_cast<uint32_t>(1 + random.below(size));
  while (size % rows != 0) --rows;
  const uint32_t columns = size / rows;
  for (const auto& [length, stride] : {std::pair(rows, columns), std::pair(columns, 1U)}) {
    const bool is_periodic = random.below(2) == 0;
    for (uint32_t rank = 0; rank < size; ++rank) {
      const uint32_t at = rank / stride % length;
      const uint32_t first = rank - at * stride;
      const bool has_lower = is_periodic || at > 0;
      const bool has_upper = is_periodic || at + 1 < length;
      const int32_t lower = has_lower ? static_cast<int32_t>(first + (at + length - 1) % length * stride) : -1;
      const int32_t upper = has_upper ? static_cast<int32_t>(first + (at + 1) % length * stride) : -1;
      for (const int32_t neighbor : {lower, upper}) {
        connections.destinations[rank].push_back(neighbor);
        connections.sources[rank].push_back(neighbor);
      }
    }
  }
  for (uint32_t rank = 0; rank < size; ++rank) {
    for (uint32_t number = 0; number < connections.destinations[rank].size(); ++number) {
      const int32_t to = connections.destinations[rank][number];
      if (to >= 0) connections.edges.push_back({rank, number, static_cast<uint32_t>(to), number ^ 1});
    }
  }
  return connections;
}

}  // namespace spinloom::collective::test
