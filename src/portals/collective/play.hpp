// Play - when the operations of all ranks' Graphs end by a Model, event by event.
//
// Contract: play() gives the time at which the last CPU sees that all has ended, all ranks beginning at 0, or an error
//   that names an operation that never begins. What is free at one moment goes in the order of ranks and of numbers.
//   Graphs are those of Rounds: sends, receives, combinations and copies, each waiting for all of some others. A send's
//   memory is free again, and what waits for that may begin, when its last byte has left.
// Threads: pure. Time: modelled, in picoseconds; of the host so much as messages are, and as the logarithm of these.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "portals/collective/graph.hpp"
#include "portals/collective/model.hpp"

namespace spinloom::collective {

// A message: when its first byte left, and when it had landed.
struct Sent {
  uint32_t from = 0;
  uint32_t to = 0;
  uint64_t bytes = 0;
  uint64_t left_ps = 0;
  uint64_t landed_ps = 0;
};

// `sent`: all messages, in the order in which they land.
[[nodiscard]] Result<uint64_t> play(std::span<const Graph> ranks, const Model& model,
                                    std::vector<Sent>* sent = nullptr);

}  // namespace spinloom::collective
