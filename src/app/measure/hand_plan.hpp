// HandPlan - the loops over its own arrays that an application would write instead of a datatype.
//
// Contract: plan_of() describes one element of a blob as parts for the loops of python/spinloom/bench/hand.c: two
//   nested loops around a block of whole elements, a list of blocks or a list of runs. Elements are the largest of 1,
//   2, 4 and 8 bytes that fit everywhere, or 16 if a block has 16 bytes. match() splits the loops of two plans until
//   both have the same, so that one nest of loops copies from one to the other.
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

// The hand_part of hand.c.
struct HandPart {
  int64_t offset = 0;  // bytes from the buffer address
  int64_t rows = 1, blocks = 1, block = 1;
  int64_t row_stride = 0, block_stride = 0;
  const int32_t* places = nullptr;
  const int32_t* lengths = nullptr;
  int64_t element = 1;  // bytes
};

struct HandPlan {
  std::vector<HandPart> parts;
  std::vector<std::shared_ptr<const std::vector<int32_t>>> tables;
};

Result<HandPlan> plan_of(const layout::Blob& blob);

// Gives both plans the same loops; an Error if no single nest of loops fits.
Result<std::pair<HandPlan, HandPlan>> match(const HandPlan& a, const HandPlan& b);

}  // namespace spinloom::app
