// Numbers are unpacked to an integer significand of 128 bits. Products and sums of such numbers are exact, or exact
// except for a last bit that stands for all lower bits; pack() rounds once.
#include "nic/hpu/soft_float.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace spinloom::hpu {
namespace {

using Wide = unsigned __int128;

enum class Kind : uint8_t { zero, finite, infinite, nan };

// A finite number is significand * 2^exponent; its significand is neither zero nor above 2^127.
struct Number {
  Kind kind = Kind::zero;
  bool negative = false;
  bool signaling = false;
  int exponent = 0;
  Wide significand = 0;
};

int top_bit(Wide value) {
  const auto high = static_cast<uint64_t>(value >> 64);
  return high != 0 ? 127 - std::countl_zero(high) : 63 - std::countl_zero(static_cast<uint64_t>(value));
}

// Moves the significand's highest bit up to `place` without changing the number.
void raise(Number& number, int place) {
  const int shift = place - top_bit(number.significand);
  number.significand <<= shift;
  number.exponent -= shift;
}

bool is_nan(const FloatFormat& format, uint64_t a) { return (a & ~format.sign_bit()) > format.infinity(); }
bool is_signaling(const FloatFormat& format, uint64_t a) { return is_nan(format, a) && (a & format.quiet_bit()) == 0; }

Number unpack(const FloatFormat& format, uint64_t a) {
  const uint64_t fraction = a & ((uint64_t{1} << format.fraction_bits()) - 1);
  const int field = static_cast<int>(a >> format.fraction_bits()) & format.exponent_top();
  Number number;
  number.negative = (a & format.sign_bit()) != 0;
  if (field == format.exponent_top()) {
    number.kind = fraction == 0 ? Kind::infinite : Kind::nan;
    number.signaling = is_signaling(format, a);
    return number;
  }
  if (field == 0 && fraction == 0) return number;
  number.kind = Kind::finite;
  number.exponent = std::max(field, 1) - format.bias() - format.fraction_bits();
  number.significand = field == 0 ? fraction : fraction | uint64_t{1} << format.fraction_bits();
  return number;
}

struct Rounded {
  uint64_t value = 0;
  bool inexact = false;
};

// significand / 2^shift rounded to an integer, which fits 64 bits.
Rounded round_shift(Wide significand, int shift, bool negative, Rounding rounding) {
  if (shift <= 0) return {static_cast<uint64_t>(significand << -shift), false};
  const bool below_half = shift > 127;  // the value is less than half of the last bit
  const Wide rest = below_half ? significand : significand & ((Wide{1} << shift) - 1);
  const Wide half = below_half ? 0 : Wide{1} << (shift - 1);
  Rounded rounded{below_half ? 0 : static_cast<uint64_t>(significand >> shift), rest != 0};
  bool up = false;
  switch (rounding) {
    case Rounding::nearest_even: up = !below_half && (rest > half || (rest == half && (rounded.value & 1) != 0)); break;
    case Rounding::nearest_away: up = !below_half && rest >= half; break;
    case Rounding::down: up = negative && rounded.inexact; break;
    case Rounding::up: up = !negative && rounded.inexact; break;
    case Rounding::to_zero:
    case Rounding::dynamic: break;
  }
  rounded.value += up ? 1 : 0;
  return rounded;
}

uint64_t overflow(const FloatFormat& format, bool negative, FloatContext& context) {
  context.flags |= flag_overflow | flag_inexact;
  const bool to_infinity = context.rounding == Rounding::nearest_even || context.rounding == Rounding::nearest_away ||
                           context.rounding == (negative ? Rounding::down : Rounding::up);
  return format.infinity() - (to_infinity ? 0 : 1);
}

// Rounds a finite number; the result has no sign.
uint64_t pack_finite(const FloatFormat& format, const Number& number, FloatContext& context) {
  const auto round_at = [&](int last_bit) {
    return round_shift(number.significand, last_bit - number.exponent, number.negative, context.rounding);
  };
  const int leading = number.exponent + top_bit(number.significand);
  const int exponent = std::max(leading, format.exponent_min());
  const Rounded rounded = round_at(exponent - format.fraction_bits());
  // The hidden bit adds 1 to the exponent field, and so does a carry out of the significand.
  const int field = exponent + format.bias() - 1;
  if (field + static_cast<int>(rounded.value >> format.fraction_bits()) >= format.exponent_top()) {
    return overflow(format, number.negative, context);
  }
  if (rounded.inexact) {
    context.flags |= flag_inexact;
    // The result is tiny unless rounding to full precision would reach the smallest normal number.
    const bool reaches = leading == format.exponent_min() - 1 &&
                         round_at(leading - format.fraction_bits()).value == uint64_t{1} << format.precision;
    if (leading < format.exponent_min() && !reaches) context.flags |= flag_underflow;
  }
  return (static_cast<uint64_t>(field) << format.fraction_bits()) + rounded.value;
}

uint64_t pack(const FloatFormat& format, const Number& number, FloatContext& context) {
  const uint64_t sign = number.negative ? format.sign_bit() : 0;
  switch (number.kind) {
    case Kind::zero: return sign;
    case Kind::infinite: return sign | format.infinity();
    case Kind::nan: return format.canonical_nan();
    case Kind::finite: break;
  }
  return sign | pack_finite(format, number, context);
}

Number nan() {
  Number number;
  number.kind = Kind::nan;
  return number;
}
Number invalid(FloatContext& context) {
  context.flags |= flag_invalid;
  return nan();
}
Number zero(bool negative) {
  Number number;
  number.negative = negative;
  return number;
}
Number infinite(bool negative) {
  Number number = zero(negative);
  number.kind = Kind::infinite;
  return number;
}

// True if an operand is a NaN, so that the result is a NaN.
bool either_nan(const Number& a, const Number& b, FloatContext& context) {
  if (a.signaling || b.signaling) context.flags |= flag_invalid;
  return a.kind == Kind::nan || b.kind == Kind::nan;
}

Number product(const Number& a, const Number& b, FloatContext& context) {
  if (either_nan(a, b, context)) return nan();
  const bool negative = a.negative != b.negative;
  const bool is_zero = a.kind == Kind::zero || b.kind == Kind::zero;
  if (a.kind == Kind::infinite || b.kind == Kind::infinite) return is_zero ? invalid(context) : infinite(negative);
  if (is_zero) return zero(negative);
  return {Kind::finite, negative, false, a.exponent + b.exponent, a.significand * b.significand};
}

Number sum(Number a, Number b, FloatContext& context) {
  if (either_nan(a, b, context)) return nan();
  const bool cancels = a.negative != b.negative;
  if (a.kind == Kind::infinite && b.kind == Kind::infinite && cancels) return invalid(context);
  if (a.kind == Kind::infinite) return a;
  if (b.kind == Kind::infinite) return b;
  if (a.kind == Kind::zero && b.kind == Kind::zero) {
    return zero(cancels ? context.rounding == Rounding::down : a.negative);
  }
  if (a.kind == Kind::zero) return b;
  if (b.kind == Kind::zero) return a;
  // Aligns the highest bits. The lower 20 bits are then free (a product has 106 bits), so that a last bit may stand
  // for all bits that the smaller number loses, and more than one leading bit cancels only if no bits are lost.
  raise(a, 125);
  raise(b, 125);
  if (std::pair(a.exponent, a.significand) < std::pair(b.exponent, b.significand)) std::swap(a, b);
  const int shift = std::min(a.exponent - b.exponent, 127);
  const bool lost = (b.significand & ((Wide{1} << shift) - 1)) != 0;
  const Wide smaller = b.significand >> shift | (lost ? 1 : 0);
  a.significand = cancels ? a.significand - smaller : a.significand + smaller;
  return a.significand == 0 ? zero(context.rounding == Rounding::down) : a;
}

Number quotient(Number a, const Number& b, FloatContext& context) {
  if (either_nan(a, b, context)) return nan();
  const bool negative = a.negative != b.negative;
  if (a.kind == b.kind && a.kind != Kind::finite) return invalid(context);  // 0 / 0, inf / inf
  if (a.kind == Kind::infinite) return infinite(negative);
  if (a.kind == Kind::zero || b.kind == Kind::infinite) return zero(negative);
  if (b.kind == Kind::zero) {
    context.flags |= flag_divide_by_zero;
    return infinite(negative);
  }
  raise(a, 126);  // gives at least 73 bits of quotient
  const bool remains = a.significand % b.significand != 0;
  const Wide significand = a.significand / b.significand | (remains ? 1 : 0);
  return {Kind::finite, negative, false, a.exponent - b.exponent, significand};
}

Number root(Number a, FloatContext& context) {
  if (either_nan(a, a, context)) return nan();
  if (a.kind == Kind::zero) return a;
  if (a.negative) return invalid(context);
  if (a.kind == Kind::infinite) return a;
  raise(a, 125);
  if (a.exponent % 2 != 0) {
    a.significand <<= 1;
    --a.exponent;
  }
  Wide root = 0;
  for (Wide bit = Wide{1} << 63; bit != 0; bit >>= 1) {
    const Wide trial = root | bit;
    if (trial * trial <= a.significand) root = trial;
  }
  const bool is_inexact = root * root != a.significand;
  return {Kind::finite, false, false, a.exponent / 2 - 1, root << 1 | (is_inexact ? 1 : 0)};
}

// True if a < b. Neither number may be a NaN.
bool less(const FloatFormat& format, uint64_t a, uint64_t b) {
  const bool a_negative = (a & format.sign_bit()) != 0;
  const bool b_negative = (b & format.sign_bit()) != 0;
  if (a_negative != b_negative) return a_negative && ((a | b) & ~format.sign_bit()) != 0;
  return a_negative ? a > b : a < b;
}
bool equal(const FloatFormat& format, uint64_t a, uint64_t b) { return a == b || ((a | b) & ~format.sign_bit()) == 0; }

bool unordered(const FloatFormat& format, uint64_t a, uint64_t b, bool quiet, FloatContext& context) {
  const bool has_nan = is_nan(format, a) || is_nan(format, b);
  const bool signaling = is_signaling(format, a) || is_signaling(format, b);
  if (signaling || (has_nan && !quiet)) context.flags |= flag_invalid;
  return has_nan;
}

// The smaller number, or the larger one if `smaller` is false.
uint64_t extreme(const FloatFormat& format, uint64_t a, uint64_t b, bool smaller, FloatContext& context) {
  if (unordered(format, a, b, true, context)) {
    if (!is_nan(format, a)) return a;
    return is_nan(format, b) ? format.canonical_nan() : b;
  }
  const bool a_negative = (a & format.sign_bit()) != 0;
  const bool a_less = equal(format, a, b) ? a_negative : less(format, a, b);
  return a_less == smaller ? a : b;
}

Number integer(bool negative, uint32_t magnitude) {
  if (magnitude == 0) return zero(false);
  return {Kind::finite, negative, false, 0, magnitude};
}

// Converts to an integer between -low and high.
uint32_t to_integer(const FloatFormat& format, uint64_t a, uint32_t low, uint32_t high, FloatContext& context) {
  const Number number = unpack(format, a);
  if (number.kind == Kind::zero) return 0;
  const uint32_t limit = number.negative ? low : high;
  const bool huge = number.kind == Kind::infinite ||
                    (number.kind == Kind::finite && number.exponent + top_bit(number.significand) > 32);
  Rounded rounded;
  if (number.kind == Kind::finite && !huge) {
    rounded = round_shift(number.significand, -number.exponent, number.negative, context.rounding);
  }
  if (number.kind == Kind::nan || huge || rounded.value > limit) {
    context.flags |= flag_invalid;
    return number.kind == Kind::nan ? high : number.negative ? 0 - low : high;
  }
  if (rounded.inexact) context.flags |= flag_inexact;
  const auto magnitude = static_cast<uint32_t>(rounded.value);
  return number.negative ? 0 - magnitude : magnitude;
}

}  // namespace

uint64_t float_add(const FloatFormat& format, uint64_t a, uint64_t b, FloatContext& context) {
  return pack(format, sum(unpack(format, a), unpack(format, b), context), context);
}
uint64_t float_multiply(const FloatFormat& format, uint64_t a, uint64_t b, FloatContext& context) {
  return pack(format, product(unpack(format, a), unpack(format, b), context), context);
}
uint64_t float_multiply_add(const FloatFormat& format, uint64_t a, uint64_t b, uint64_t c, FloatContext& context) {
  const Number exact = product(unpack(format, a), unpack(format, b), context);
  return pack(format, sum(exact, unpack(format, c), context), context);
}
uint64_t float_divide(const FloatFormat& format, uint64_t a, uint64_t b, FloatContext& context) {
  return pack(format, quotient(unpack(format, a), unpack(format, b), context), context);
}
uint64_t float_square_root(const FloatFormat& format, uint64_t a, FloatContext& context) {
  return pack(format, root(unpack(format, a), context), context);
}

uint64_t float_minimum(const FloatFormat& format, uint64_t a, uint64_t b, FloatContext& context) {
  return extreme(format, a, b, true, context);
}
uint64_t float_maximum(const FloatFormat& format, uint64_t a, uint64_t b, FloatContext& context) {
  return extreme(format, a, b, false, context);
}
bool float_equal(const FloatFormat& format, uint64_t a, uint64_t b, FloatContext& context) {
  return !unordered(format, a, b, true, context) && equal(format, a, b);
}
bool float_less(const FloatFormat& format, uint64_t a, uint64_t b, FloatContext& context) {
  return !unordered(format, a, b, false, context) && less(format, a, b);
}
bool float_less_equal(const FloatFormat& format, uint64_t a, uint64_t b, FloatContext& context) {
  return !unordered(format, a, b, false, context) && (less(format, a, b) || equal(format, a, b));
}

uint32_t float_classify(const FloatFormat& format, uint64_t a) {
  const Number number = unpack(format, a);
  const bool normal = number.kind == Kind::finite && (number.significand >> format.fraction_bits()) != 0;
  // Classes 0 to 3 run from minus infinity to minus zero, 4 to 7 from plus zero to plus infinity.
  const unsigned distance = number.kind == Kind::zero ? 0 : number.kind == Kind::infinite ? 3 : normal ? 2 : 1;
  if (number.kind == Kind::nan) return number.signaling ? 1u << 8 : 1u << 9;
  return 1u << (number.negative ? 3 - distance : 4 + distance);
}

uint64_t float_convert(const FloatFormat& from, const FloatFormat& to, uint64_t a, FloatContext& context) {
  const Number number = unpack(from, a);
  if (number.signaling) context.flags |= flag_invalid;
  return pack(to, number, context);
}
uint64_t float_from_signed(const FloatFormat& format, int32_t value, FloatContext& context) {
  const auto bits = static_cast<uint32_t>(value);
  return pack(format, integer(value < 0, value < 0 ? 0 - bits : bits), context);
}
uint64_t float_from_unsigned(const FloatFormat& format, uint32_t value, FloatContext& context) {
  return pack(format, integer(false, value), context);
}
uint32_t float_to_signed(const FloatFormat& format, uint64_t a, FloatContext& context) {
  return to_integer(format, a, 0x80000000u, 0x7fffffffu, context);
}
uint32_t float_to_unsigned(const FloatFormat& format, uint64_t a, FloatContext& context) {
  return to_integer(format, a, 0, UINT32_MAX, context);
}

}  // namespace spinloom::hpu
