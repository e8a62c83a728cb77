// Shrink - the data that a call moves, divided by a whole number: for grow.cpp only.
//
// Contract: fewer elements, or, of one element with gaps, the first of its blocks, if they are all of one size. Data
//   that cannot be divided are refused with a sentence.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "predict/trace/trace.hpp"

namespace spinloom::predict {

// Adds types to `types` if it needs new ones.
[[nodiscard]] Result<trace::Block> shrink(const trace::Block& block, uint64_t divisor,
                                          std::vector<trace::TypeEntry>& types);

}  // namespace spinloom::predict
