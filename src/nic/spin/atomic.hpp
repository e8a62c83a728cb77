// Atomic - the operations of Portals 4 on elements of a target's memory, and their datatypes.
//
// Contract: numbers are those of Portals 4's ptl_op_t and ptl_datatype_t. check() says what is wrong with a request.
//   Elementwise: before = target, target = operation(target, source). The swap family replaces the target by the
//   source: swap always; compare_swap_... where `operand RELATION target` holds; masked_swap in the bits that the
//   operand has. Requests of the swap family always fetch: they return the values before; others may.
// Threads: pure. Time: none.
#pragma once

#include <array>
#include <cstdint>

#include "base/result.hpp"

namespace spinloom::spin {

enum class AtomicOperation : uint8_t {
  min,
  max,
  sum,
  product,
  logical_or,
  logical_and,
  bit_or,
  bit_and,
  logical_xor,
  bit_xor,
  swap,
  compare_swap,            // the relation is "equal"
  compare_swap_not_equal,
  compare_swap_less_equal,
  compare_swap_less,
  compare_swap_greater_equal,
  compare_swap_greater,
  masked_swap,
};
inline constexpr uint8_t atomic_operations = 18;

enum class Datatype : uint8_t {
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  float32,
  int64,
  uint64,
  float64,
  complex64,
  complex128,
  long_double,
  long_double_complex,
};
inline constexpr uint8_t datatypes = 14;

// The operand of a swap: one element in the first bytes. A long_double_complex (32 B) is packed: the 10 bytes that
// count of each of its two long doubles, one behind the other.
using AtomicOperand = std::array<uint64_t, 3>;
inline constexpr uint32_t long_double_bytes = 10;

[[nodiscard]] AtomicOperand operand_of(Datatype type, const void* element);
// Writes the operand to `element`, which has bytes_of(type) bytes.
void store_operand(Datatype type, const AtomicOperand& operand, void* element);

[[nodiscard]] constexpr uint32_t bytes_of(Datatype type) {
  switch (type) {
    case Datatype::int8:
    case Datatype::uint8: return 1;
    case Datatype::int16:
    case Datatype::uint16: return 2;
    case Datatype::int32:
    case Datatype::uint32:
    case Datatype::float32: return 4;
    case Datatype::int64:
    case Datatype::uint64:
    case Datatype::float64:
    case Datatype::complex64: return 8;
    case Datatype::complex128:
    case Datatype::long_double: return 16;
    case Datatype::long_double_complex: return 32;
  }
  return 0;
}

[[nodiscard]] constexpr bool is_swap(AtomicOperation operation) { return operation >= AtomicOperation::swap; }
// True for operations with an operand (compare_swap..., masked_swap). Such operations change one element.
[[nodiscard]] constexpr bool has_operand(AtomicOperation operation) { return operation > AtomicOperation::swap; }

// `limit` is the most bytes of a request.
[[nodiscard]] Status check(AtomicOperation operation, Datatype type, uint64_t length, bool fetching, uint64_t limit);

}  // namespace spinloom::spin
