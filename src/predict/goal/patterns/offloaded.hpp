// Offloaded - Graphs of collective operations as a Schedule of triggered operations.
//
// Contract: with o and O of 0 no CPU takes part after the begin. A send is a put, which counts at its target; a
//   combination is an atomic, and a copy a put, to the rank itself, which count there. Receives, combinations and
//   copies on which the same operations depend have one count, and one `arrived` of all of them; these operations wait
//   for that. Nothing waits until a send has left its memory, so that all but the first operations are triggered. A
//   send that no rank receives is an error. graph_of() is called twice for each rank, and no Graph is kept.
// Invariants: (1) an operation that waits for a receive, combination or copy of the Graph waits for it here, too.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/result.hpp"
#include "portals/collective/graph.hpp"
#include "predict/schedule/schedule.hpp"

namespace spinloom::goal {

using GraphOf = std::function<Result<collective::Graph>(uint32_t rank)>;

[[nodiscard]] Result<schedule::Schedule> offloaded(uint32_t ranks, const GraphOf& graph_of);
[[nodiscard]] Result<schedule::Schedule> offloaded(std::span<const collective::Graph> ranks);

}  // namespace spinloom::goal
