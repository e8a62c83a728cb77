// soft_float - IEEE 754 binary32 and binary64 arithmetic in integers, as the F and D extensions of RISC-V define it.
//
// Contract: operands and results are the bits of a number, in the low bits of a uint64_t. Every operation takes the
//   rounding mode from its FloatContext and adds the exceptions that it raises to the context's flags. A NaN result
//   is the canonical NaN. Tininess is detected after rounding.
// Invariants: 1. the result depends on the arguments only: not on the host's processor, its modes, or the compiler's
//   flags; 2. every result is the exact one, rounded once.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>

namespace spinloom::hpu {

// The numbers of the rm field and of frm; 5 and 6 are reserved.
enum class Rounding : uint8_t { nearest_even, to_zero, down, up, nearest_away, dynamic = 7 };

// The bits of fflags.
inline constexpr uint8_t flag_inexact = 1;
inline constexpr uint8_t flag_underflow = 2;
inline constexpr uint8_t flag_overflow = 4;
inline constexpr uint8_t flag_divide_by_zero = 8;
inline constexpr uint8_t flag_invalid = 16;

struct FloatFormat {
  int precision = 0;  // bits of the significand, the hidden bit included
  int exponent_bits = 0;

  [[nodiscard]] constexpr int fraction_bits() const { return precision - 1; }
  [[nodiscard]] constexpr int exponent_top() const { return (1 << exponent_bits) - 1; }
  [[nodiscard]] constexpr int bias() const { return exponent_top() >> 1; }
  [[nodiscard]] constexpr int exponent_min() const { return 1 - bias(); }
  [[nodiscard]] constexpr uint64_t sign_bit() const { return uint64_t{1} << (fraction_bits() + exponent_bits); }
  [[nodiscard]] constexpr uint64_t infinity() const { return static_cast<uint64_t>(exponent_top()) << fraction_bits(); }
  [[nodiscard]] constexpr uint64_t quiet_bit() const { return uint64_t{1} << (fraction_bits() - 1); }
  [[nodiscard]] constexpr uint64_t canonical_nan() const { return infinity() | quiet_bit(); }
};
inline constexpr FloatFormat single_format{24, 8};
inline constexpr FloatFormat double_format{53, 11};

struct FloatContext {
  Rounding rounding = Rounding::nearest_even;
  uint8_t flags = 0;
};

uint64_t float_add(const FloatFormat& format, uint64_t a, uint64_t b, FloatContext& context);
uint64_t float_multiply(const FloatFormat& format, uint64_t a, uint64_t b, FloatContext& context);
// a * b + c, rounded once.
uint64_t float_multiply_add(const FloatFormat& format, uint64_t a, uint64_t b, uint64_t c, FloatContext& context);
uint64_t float_divide(const FloatFormat& format, uint64_t a, uint64_t b, FloatContext& context);
uint64_t float_square_root(const FloatFormat& format, uint64_t a, FloatContext& context);

// If one operand is a NaN, the result is the other; -0 is less than +0.
uint64_t float_minimum(const FloatFormat& format, uint64_t a, uint64_t b, FloatContext& context);
uint64_t float_maximum(const FloatFormat& format, uint64_t a, uint64_t b, FloatContext& context);
// False if an operand is a NaN, which also raises invalid; float_equal raises invalid only for signaling NaNs.
bool float_equal(const FloatFormat& format, uint64_t a, uint64_t b, FloatContext& context);
bool float_less(const FloatFormat& format, uint64_t a, uint64_t b, FloatContext& context);
bool float_less_equal(const FloatFormat& format, uint64_t a, uint64_t b, FloatContext& context);

// One of ten bits, as defined for fclass.
uint32_t float_classify(const FloatFormat& format, uint64_t a);

uint64_t float_convert(const FloatFormat& from, const FloatFormat& to, uint64_t a, FloatContext& context);
uint64_t float_from_signed(const FloatFormat& format, int32_t value, FloatContext& context);
uint64_t float_from_unsigned(const FloatFormat& format, uint32_t value, FloatContext& context);
// Numbers that do not fit give the nearest integer that does, NaN the largest; both raise invalid.
uint32_t float_to_signed(const FloatFormat& format, uint64_t a, FloatContext& context);
uint32_t float_to_unsigned(const FloatFormat& format, uint64_t a, FloatContext& context);

}  // namespace spinloom::hpu
