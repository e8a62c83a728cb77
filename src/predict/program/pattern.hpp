// Pattern - a recorded program as the work of every rank of a grid: for grow.cpp only.
//
// Contract: pattern_of() finds the grid on which all ranks do the same calls, or all ranks at the same edges do, with
//   peers that are the same steps away, and communicators that are the same slices. Otherwise it is an Error that names
//   the first thing that no grid explains.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "predict/program/grid.hpp"
#include "predict/trace/trace.hpp"

namespace spinloom::predict {

// A peer of a call: the same one on all ranks, or `steps` away on the grid. Beyond a wall there is no peer.
struct Relation {
  bool is_constant = true;
  int32_t constant = trace::any;
  Grid::Steps steps{};
  bool operator==(const Relation&) const = default;
};

struct CallPattern {
  Relation peer;
  Relation receive_peer;
  std::vector<Relation> matches;  // the sources of the messages that the call has matched
};

struct CommPattern {
  uint32_t mask = 0;  // a bit for each dimension that its slices span
  std::vector<Relation> sources;
  std::vector<Relation> destinations;
};

struct Pattern {
  Grid grid;
  uint8_t walled_dims = 0;  // a bit for each dimension that has ends, so that ranks there have no neighbour
  bool has_edge_classes = false;  // ranks of another edge class (grid.hpp) do other calls
  std::vector<std::vector<uint32_t>> events;  // the numbers of each rank's events that are no polls in vain
  std::vector<std::vector<CallPattern>> calls;  // one list for each edge class, with one for each of these events
  std::vector<CommPattern> comms;
};

[[nodiscard]] Result<Pattern> pattern_of(std::span<const trace::RankTrace> traces);

}  // namespace spinloom::predict
