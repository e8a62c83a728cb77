#include "torture/elements.hpp"

#include <cstring>
#include <type_traits>

#include "base/assert.hpp"

namespace spinloom::torture {
namespace {

template <class T>
T sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

template <class T>
void apply_all(spin::AtomicOperation operation, uint8_t* target, const uint8_t* source, uint64_t length) {
  for (uint64_t at = 0; at < length; at += sizeof(T)) {
    T value;
    T operand;
    std::memcpy(&value, target + at, sizeof(T));
    std::memcpy(&operand, source + at, sizeof(T));
    switch (operation) {
      case spin::AtomicOperation::min: value = operand < value ? operand : value; break;
      case spin::AtomicOperation::max: value = operand > value ? operand : value; break;
      case spin::AtomicOperation::sum: value = sum(value, operand); break;
      case spin::AtomicOperation::swap: value = operand; break;
      default: SPL_ASSERT(false, "the oracle has no operation ", static_cast<int>(operation));
    }
    std::memcpy(target + at, &value, sizeof(T));
  }
}

}  // namespace

void apply(spin::AtomicOperation operation, spin::Datatype datatype, uint8_t* target, const uint8_t* source,
           uint64_t length) {
  switch (datatype) {
    case spin::Datatype::int8: return apply_all<int8_t>(operation, target, source, length);
    case spin::Datatype::uint16: return apply_all<uint16_t>(operation, target, source, length);
    case spin::Datatype::int32: return apply_all<int32_t>(operation, target, source, length);
    case spin::Datatype::uint64: return apply_all<uint64_t>(operation, target, source, length);
    case spin::Datatype::float64: return apply_all<double>(operation, target, source, length);
    default: SPL_ASSERT(false, "the oracle has no datatype ", static_cast<int>(datatype));
  }
}

}  // namespace spinloom::torture
