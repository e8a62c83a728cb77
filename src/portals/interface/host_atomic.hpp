// Host atomic - performs an atomic of Portals 4 on host memory, for drivers.
//
// Contract: perform() changes the whole elements that the action names, at once, in order; the caller decides when. If
//   the action wants the old elements, perform() copies them to `before` first. Bytes after the last whole element
//   stay. Integers wrap around. Logical operations give 0 or 1. Sums and products of floating-point elements are
//   rounded once an operation; a complex product is re = ar * br - ai * bi, im = ar * bi + ai * br.
// Threads: one owner of the memory. Time: none.
#pragma once

#include "nic/portals/action.hpp"

namespace spinloom::portals {

nic::DmaId perform(const nic::ApplyAtomic& apply);

// perform_indivisibly() does the same, but other processors see each element change at once, and changes that they make
// by it at the same time are not lost. is_indivisible() says whether that can be: the elements are integers or real
// numbers of at most eight bytes, lie side by side, and each at a multiple of its size.
[[nodiscard]] bool is_indivisible(const nic::ApplyAtomic& apply);
nic::DmaId perform_indivisibly(const nic::ApplyAtomic& apply);

}  // namespace spinloom::portals
