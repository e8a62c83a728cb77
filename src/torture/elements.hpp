// Elements - the oracle's arithmetic of atomics, which shares no code with the engine's.
//
// Contract: apply() sets target to operation(target, source), element by element, for min, max, sum and swap. Whole
//   numbers wrap around.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>

#include "nic/spin/atomic.hpp"

namespace spinloom::torture {

// The datatype is int8, uint16, int32, uint64 or float64; `length` is in bytes and a multiple of its size.
void apply(spin::AtomicOperation operation, spin::Datatype datatype, uint8_t* target, const uint8_t* source,
           uint64_t length);

}  // namespace spinloom::torture
