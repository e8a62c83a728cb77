#include "mpi/moving/combine.hpp"

#include <cstring>

namespace spinloom::mpi {
namespace {

template <class Step, class Combine>
[[gnu::always_inline]] inline void combine_step(const char* from, char* to, Combine combine) {
  Step operand;
  Step element;
  std::memcpy(&operand, from, sizeof operand);
  std::memcpy(&element, to, sizeof element);
  combine(element, operand);
  std::memcpy(to, &element, sizeof element);
}

template <class Number, int bytes>
using Vector [[gnu::vector_size(bytes)]] = Number;

// Goes by vectors of so many bytes.
template <class Number, int vector_bytes, class Combine>
[[gnu::always_inline]] inline void combine_each(const void* operands, void* into, int64_t count, Combine combine) {
  constexpr int64_t lanes = vector_bytes / sizeof(Number);
  using Step = Vector<Number, vector_bytes>;
  const auto* from = static_cast<const char*>(operands);
  auto* to = static_cast<char*>(into);
  int64_t left = count;
  for (; left >= 2 * lanes; left -= 2 * lanes, from += 2 * vector_bytes, to += 2 * vector_bytes) {
    combine_step<Step>(from, to, combine);
    combine_step<Step>(from + vector_bytes, to + vector_bytes, combine);
  }
  for (; left > 0; --left, from += sizeof(Number), to += sizeof(Number)) combine_step<Number>(from, to, combine);
}

constexpr auto add = [](auto& a, const auto& b) __attribute__((always_inline)) { a += b; };

// Sums of integers are those of unsigned numbers, which may overflow.
template <class Number, int vector_bytes>
[[gnu::always_inline]] inline bool combine_integers(int op, const void* operands, void* into, int64_t count) {
  const auto each = [&](auto combine) __attribute__((always_inline)) {
    combine_each<Number, vector_bytes>(operands, into, count, combine);
    return true;
  };
  switch (op) {
    case PTL_SUM: return each(add);
    case PTL_BAND: return each([](auto& a, const auto& b) __attribute__((always_inline)) { a &= b; });
    case PTL_BOR: return each([](auto& a, const auto& b) __attribute__((always_inline)) { a |= b; });
    case PTL_BXOR: return each([](auto& a, const auto& b) __attribute__((always_inline)) { a ^= b; });
    default: return false;
  }
}

template <class Number, int vector_bytes>
[[gnu::always_inline]] inline bool combine_floats(int op, const void* operands, void* into, int64_t count) {
  if (op == PTL_SUM) combine_each<Number, vector_bytes>(operands, into, count, add);
  return op == PTL_SUM;
}

template <int vector_bytes>
[[gnu::always_inline]] inline bool combine_by(int op, ptl_datatype_t type, const void* operands, void* into,
                                              int64_t count) {
  switch (type) {
    case PTL_INT32_T:
    case PTL_UINT32_T: return combine_integers<uint32_t, vector_bytes>(op, operands, into, count);
    case PTL_INT64_T:
    case PTL_UINT64_T: return combine_integers<uint64_t, vector_bytes>(op, operands, into, count);
    case PTL_FLOAT: return combine_floats<float, vector_bytes>(op, operands, into, count);
    case PTL_DOUBLE: return combine_floats<double, vector_bytes>(op, operands, into, count);
    default: return false;
  }
}

// ---- the same for each kind of processor ----

using Combine = bool (*)(int op, ptl_datatype_t type, const void* operands, void* into, int64_t count);

bool combine_plainly(int op, ptl_datatype_t type, const void* operands, void* into, int64_t count) {
  return combine_by<16>(op, type, operands, into, count);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] bool combine_avx2(int op, ptl_datatype_t type, const void* operands, void* into,
                                          int64_t count) {
  return combine_by<32>(op, type, operands, into, count);
}

Combine fastest() { return __builtin_cpu_supports("avx2") ? combine_avx2 : combine_plainly; }
#else
Combine fastest() { return combine_plainly; }
#endif

}  // namespace

bool combine(int op, ptl_datatype_t type, const void* operands, void* into, int64_t count) {
  static const Combine chosen = fastest();
  return chosen(op, type, operands, into, count);
}

}  // namespace spinloom::mpi
