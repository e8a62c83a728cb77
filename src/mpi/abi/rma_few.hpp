// combine_few - changes a few elements by an operation of MPI, where a call of MPI_Reduce_local would take longer than
// the work.
//
// Contract: combine_few() makes each of `count` elements at `into` what the operation makes of it and of its operand,
//   bit by bit as MPI_Reduce_local does. False: it does not know the type or the operation, and has changed nothing.
//   Addresses may be any.
// Threads: pure. Time: none.
#pragma once

#include <portals4.h>

#include <cstdint>
#include <cstring>

namespace spinloom::mpi {

template <class Number, class Combine>
void combine_each(const void* operands, void* into, int64_t count, Combine combine) {
  const auto* from = static_cast<const char*>(operands);
  auto* to = static_cast<char*>(into);
  for (int64_t i = 0; i < count; ++i, from += sizeof(Number), to += sizeof(Number)) {
    Number operand;
    Number element;
    std::memcpy(&operand, from, sizeof operand);
    std::memcpy(&element, to, sizeof element);
    element = static_cast<Number>(combine(element, operand));
    std::memcpy(to, &element, sizeof element);
  }
}

// Sums of integers are those of unsigned numbers, which may overflow.
template <class Number>
bool combine_integers(int op, const void* operands, void* into, int64_t count) {
  const auto each = [&](auto combine) {
    combine_each<Number>(operands, into, count, combine);
    return true;
  };
  switch (op) {
    case PTL_SUM: return each([](Number a, Number b) { return a + b; });
    case PTL_BAND: return each([](Number a, Number b) { return a & b; });
    case PTL_BOR: return each([](Number a, Number b) { return a | b; });
    case PTL_BXOR: return each([](Number a, Number b) { return a ^ b; });
    default: return false;
  }
}

inline bool combine_few(int op, ptl_datatype_t type, const void* operands, void* into, int64_t count) {
  switch (type) {
    case PTL_INT32_T:
    case PTL_UINT32_T: return combine_integers<uint32_t>(op, operands, into, count);
    case PTL_INT64_T:
    case PTL_UINT64_T: return combine_integers<uint64_t>(op, operands, into, count);
    case PTL_FLOAT:
      if (op == PTL_SUM) combine_each<float>(operands, into, count, [](float a, float b) { return a + b; });
      return op == PTL_SUM;
    case PTL_DOUBLE:
      if (op == PTL_SUM) combine_each<double>(operands, into, count, [](double a, double b) { return a + b; });
      return op == PTL_SUM;
    default: return false;
  }
}

}  // namespace spinloom::mpi
