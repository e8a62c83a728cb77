#include "portals/rma/elements.hpp"

#include <algorithm>
#include <complex>
#include <cstring>

namespace spinloom::rma {
namespace {

using spin::AtomicOperation;
using spin::Datatype;

// Returns the plan that reads elements of a type without changing a bit of them.
ElementPlan plan_to_read(Datatype type) {
  switch (spin::bytes_of(type)) {
    case 1: return {AtomicOperation::bit_or, Datatype::uint8, true, true};
    case 2: return {AtomicOperation::bit_or, Datatype::uint16, true, true};
    case 4: return {AtomicOperation::bit_or, Datatype::uint32, true, true};
    case 8: return {AtomicOperation::bit_or, Datatype::uint64, true, true};
    default: return {AtomicOperation::sum, type, true, true};
  }
}

template <class Element>
void fill_with(const Element& element, std::span<uint8_t> bytes) {
  for (size_t at = 0; at + sizeof(element) <= bytes.size(); at += sizeof(element)) {
    std::memcpy(&bytes[at], &element, sizeof(element));
  }
}

}  // namespace

Result<ElementPlan> plan_of(uint32_t op, Datatype type, bool fetching) {
  if (static_cast<uint32_t>(type) >= spin::datatypes) {
    return fail(Code::invalid, "there is no type of elements ", static_cast<uint32_t>(type));
  }
  if (op == op_nothing) {
    if (!fetching) return fail(Code::invalid, "an operation that changes nothing is for calls that fetch");
    return plan_to_read(type);
  }
  ElementPlan plan;
  plan.type = type;
  plan.operation = AtomicOperation::swap;
  plan.fetches = true;
  if (op == op_replace || op == static_cast<uint32_t>(AtomicOperation::swap)) return plan;
  if (op > static_cast<uint32_t>(AtomicOperation::swap)) return fail(Code::invalid, "there is no operation ", op);
  plan.operation = static_cast<AtomicOperation>(op);
  plan.fetches = fetching;
  SPL_TRY(spin::check(plan.operation, type, spin::bytes_of(type), fetching, UINT32_MAX));
  return plan;
}

void fill_neutral(const ElementPlan& plan, std::span<uint8_t> bytes) {
  std::ranges::fill(bytes, uint8_t{0});
  if (plan.operation != AtomicOperation::sum) return;
  if (plan.type == Datatype::complex128) fill_with(std::complex<double>(-0.0, -0.0), bytes);
  if (plan.type == Datatype::long_double) fill_with(-0.0L, bytes);
  if (plan.type == Datatype::long_double_complex) fill_with(std::complex<long double>(-0.0L, -0.0L), bytes);
}

}  // namespace spinloom::rma
