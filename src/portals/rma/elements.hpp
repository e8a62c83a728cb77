// Elements - the translation of users' accumulating operations to atomics of the NIC.
//
// Contract: plan_of() finds the NIC's atomic for an operation on elements of a type, or says why there is none.
//   Replacing is a swap, even if the old elements are not wanted. Reading is an atomic that changes nothing: "or" with
//   zeros, and a sum with negative zeros for the types that are longer than the integers of the NIC. fill_neutral()
//   writes these elements.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.hpp"
#include "nic/spin/atomic.hpp"

namespace spinloom::rma {

// plan_of() takes the numbers of the NIC's operations up to swap, and these two.
inline constexpr uint32_t op_replace = 0x100;
inline constexpr uint32_t op_nothing = 0x101;

struct ElementPlan {
  spin::AtomicOperation operation = spin::AtomicOperation::sum;
  spin::Datatype type = spin::Datatype::int8;
  bool fetches = false;  // the NIC sends old elements back, wanted or not
  bool reads = false;  // the source is neutral elements (fill_neutral())
};

[[nodiscard]] Result<ElementPlan> plan_of(uint32_t op, spin::Datatype type, bool fetching);

// Fills `bytes` with elements that change nothing, for a plan that reads.
void fill_neutral(const ElementPlan& plan, std::span<uint8_t> bytes);

}  // namespace spinloom::rma
