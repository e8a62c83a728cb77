// Grow - a recorded program on more ranks than it was recorded on.
//
// Contract: grow() refits what all ranks do on their grid to a larger grid of the same dimensions. Weak scaling: each
//   rank keeps its data. Strong scaling: all ranks together keep theirs. A rank then computes by as much less as there
//   are more ranks. What it has for a neighbour shrinks by as much as the grid grows along the dimensions that the
//   message does not cross; what it has for all others of an all-to-all, by as much as there are more ranks. Neighbours
//   are as many steps away, slices of communicators are as long as the new grid's, and the blocks of all-to-alls shrink
//   so that a rank sends what it sent. A new rank takes its times from the recorded one at its place, or at the same
//   edges. What does not fit is refused with a sentence.
// Threads: pure. Time: of the recording host, in ns.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "predict/trace/trace.hpp"

namespace spinloom::predict {

enum class Scaling : uint8_t { weak, strong };

struct Grown {
  std::vector<trace::RankTrace> traces;
  std::string description;  // "a grid of 2 x 2 ranks became 4 x 4"
};

[[nodiscard]] Result<Grown> grow(std::span<const trace::RankTrace> traces, uint32_t ranks,
                                 Scaling scaling = Scaling::weak);

}  // namespace spinloom::predict
