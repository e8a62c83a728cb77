// Shrink - the data that a call moves, divided by a whole number: for grow.cpp only.
//
// Contract: what is left are fewer elements or, for one element with gaps, the beginning of its only block or the first
//   of its blocks, if all have one size. Data that cannot be divided are refused with a sentence.
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
