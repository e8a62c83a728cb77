// Elements - the oracle's own arithmetic of atomics, which shares nothing with the engine's.
//
// Contract: target = operation(target, source), element by element: min, max, sum, swap. Whole numbers wrap around.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>

#include "nic/atomic.hpp"

namespace spinloom::torture {

// Of int8, uint16, int32, uint64 or float64; `length` is in bytes, whole elements.
void apply(nic::AtomicOperation operation, nic::Datatype datatype, uint8_t* target, const uint8_t* source,
           uint64_t length);

}  // namespace spinloom::torture
