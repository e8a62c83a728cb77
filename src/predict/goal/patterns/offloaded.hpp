// Offloaded - Graphs of collective operations as a Schedule of triggered operations.
//
// Contract: with o and O of 0 no CPU takes part after the begin. A send is a put, which counts at its target; a
//   combination is an atomic, and a copy a put, to the rank itself, which count there. Receives, combinations and
//   copies for which the same ones wait have one count, and an `arrived` of all of them, for which these wait. That a
//   send has left its memory is not waited for, so that all but the first operations are triggered.
//   Of many ranks graph_of() makes each Graph twice, and none is kept.
// Invariants: (1) what waits for an operation of the Graph, but a send, waits for it here.
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
