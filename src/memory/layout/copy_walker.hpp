// Copy walker - the portable path: the walker of include/spinloom/layout_walk.h, the same file that a handler runs.
//
// Contract: moves the packed bytes [first, last) between memory (at the first byte that the type touches) and a
//   packed buffer that holds last - first bytes. The caller has checked the range.
// Threads: pure over disjoint ranges. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/layout/blob.hpp"

namespace spinloom::layout {

void walk(const Blob& blob, bool is_pack, std::byte* memory, std::byte* packed, int64_t first, int64_t last);

}  // namespace spinloom::layout
