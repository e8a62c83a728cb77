// HandPlan - the loops over its own arrays that an application would write instead of a datatype.
//
// Contract: plan_of() describes one element of a blob as parts for the loops of python/spinloom/bench/hand.c. A part is
//   two nested loops around a block, a list of blocks of one length, or a list of runs. Its elements have the largest
//   of 1, 2, 4 and 8 bytes that divides all lengths and places, or 16 if blocks have 16 bytes and lie at multiples of
//   16. An Error: a type without bytes, more than 65536 parts, an index that does not fit in 32 bits. match() splits
//   the loops of two plans until both have the same, so that one nest of loops copies from one to the other.
// Invariants: (1) parts in packed order; (2) the tables live as long as the plan.
// Threads: immutable. Time: none.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "memory/layout/blob.hpp"

namespace spinloom::app {

// The struct hand_part of hand.c. `block`, strides, places and lengths count elements.
struct HandPart {
  int64_t offset = 0;  // bytes from the buffer address
  int64_t rows = 1, blocks = 1, block = 1;
  int64_t row_stride = 0, block_stride = 0;
  const int32_t* places = nullptr;  // the place of each block or run; null: the blocks lie at strides
  const int32_t* lengths = nullptr;  // the length of each run; null: all have `block` elements
  int64_t element = 1;  // bytes of one
};

struct HandPlan {
  std::vector<HandPart> parts;
  std::vector<std::shared_ptr<const std::vector<int32_t>>> tables;  // arrays into which `places` and `lengths` point
};

Result<HandPlan> plan_of(const layout::Blob& blob);

// Gives both plans the same loops; an Error if no single nest of loops fits.
Result<std::pair<HandPlan, HandPlan>> match(const HandPlan& a, const HandPlan& b);

}  // namespace spinloom::app
