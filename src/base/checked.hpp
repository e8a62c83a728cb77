// Checked - exact 64-bit arithmetic, for every size and displacement of a layout.
//
// Contract: each call returns the exact result or Code::overflow with the operands.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>

#include "base/result.hpp"

namespace spinloom::checked {

inline Result<int64_t> add(int64_t a, int64_t b) {
  int64_t out = 0;
  if (__builtin_add_overflow(a, b, &out)) return fail(Code::overflow, a, " + ", b, " does not fit in 64 bits");
  return out;
}

inline Result<int64_t> sub(int64_t a, int64_t b) {
  int64_t out = 0;
  if (__builtin_sub_overflow(a, b, &out)) return fail(Code::overflow, a, " - ", b, " does not fit in 64 bits");
  return out;
}

inline Result<int64_t> mul(int64_t a, int64_t b) {
  int64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out)) return fail(Code::overflow, a, " * ", b, " does not fit in 64 bits");
  return out;
}

}  // namespace spinloom::checked
