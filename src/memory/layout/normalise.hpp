// Normalise - from a datatype as it was written to the shortest nest that the passes find.
//
// Contract: the nest has the type map of `type`, byte by byte and in the same order (compared with the oracle for
//   random trees). Bounds play no part: they stay with the type and go into the blob's header.
// Invariants: levels that do nothing (count 1, resized, zero sizes) are gone.
// Threads: pure. Time: none.
#pragma once

#include "memory/layout/nest.hpp"
#include "memory/layout/type.hpp"

namespace spinloom::layout {

PlacedNest normalise(const Type& type);

}  // namespace spinloom::layout
