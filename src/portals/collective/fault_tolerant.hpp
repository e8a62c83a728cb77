// Fault tolerant - a broadcast that reaches all ranks which live, as long as fewer than log2 P others die.
//
// Contract: ranks send to all neighbours of a binomial graph but the root, those 1, 2, 4, .. places further on and
//   back, as soon as the data have come from one of them (Hoefler et al., "sPIN: High-performance streaming Processing
//   in the Network", section 5.4; Angskun, Bosilca, Dongarra, "Binomial graph"). `memory` has room for the data, and
//   lives as long as the Graph: all messages land there and leave from there, also those that come after the first, and
//   the data are copied between it and `data`. The broadcast is over at a rank when the rank has the data. Its NIC
//   passes the data on until the Graph is freed, so the Graph must live until all other ranks have them.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "portals/collective/graph.hpp"

namespace spinloom::collective {

inline constexpr std::string_view fault_tolerant_name = "binomial-graph";

struct Position {
  uint32_t rank = 0;
  uint32_t size = 1;
  uint32_t root = 0;
};
// Returns the neighbours of a rank, without the rank itself and none twice.
[[nodiscard]] std::vector<uint32_t> binomial_graph_neighbors(const Position& position);
[[nodiscard]] Graph fault_tolerant_bcast(uint8_t* data, uint8_t* memory, uint64_t bytes, const Position& position);

}  // namespace spinloom::collective
