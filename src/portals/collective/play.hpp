// Play - the times at which the operations of all ranks' Graphs end by a Model, event by event.
//
// Contract: play() returns the time at which the last CPU sees that all has ended, if all ranks begin at 0. It returns
//   an Error that names an operation that never begins, if there is one. Operations that may begin at one moment go in
//   the order of ranks and of numbers. Graphs are those of Rounds: sends, receives, combinations and copies, each of
//   which waits for all of some others. When the last byte of a send has left, its memory is free again, and operations
//   that wait for it may begin.
// Threads: pure. Time: modelled, in picoseconds. Work: n log n for n messages.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "portals/collective/graph.hpp"
#include "portals/collective/model.hpp"

namespace spinloom::collective {

// A message: when its first byte left, and when it had landed.
struct PlayedMessage {
  uint32_t source = 0;
  uint32_t target = 0;
  uint64_t bytes = 0;
  uint64_t left_ps = 0;
  uint64_t landed_ps = 0;
};

// `messages`: all messages, in the order in which they land.
[[nodiscard]] Result<uint64_t> play(std::span<const Graph> ranks, const Model& model,
                                    std::vector<PlayedMessage>* messages = nullptr);

}  // namespace spinloom::collective
