// Soft floating point compared with the host's, which has the first four rounding modes. Ties to away are compared
// with sums that are exact in the wider format.
#include "nic/hpu/soft_float.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>

#include "nic/hpu/float_operands.hpp"
#include "nic/hpu/testing/machine.hpp"

namespace spinloom::hpu {
namespace {

static_assert(std::numeric_limits<double>::is_iec559 && std::numeric_limits<float>::is_iec559);

// The host's number type of a format.
struct SingleHost {
  using Number = float;
  static constexpr const FloatFormat& format = single_format;
  static float number(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
  static uint64_t bits(float number) { return std::bit_cast<uint32_t>(number); }
};
struct DoubleHost {
  using Number = double;
  static constexpr const FloatFormat& format = double_format;
  static double number(uint64_t bits) { return std::bit_cast<double>(bits); }
  static uint64_t bits(double number) { return std::bit_cast<uint64_t>(number); }
};

struct HostMode {
  Rounding rounding;
  int mode;
};
constexpr HostMode host_modes[] = {{Rounding::nearest_even, FE_TONEAREST},
                                   {Rounding::to_zero, FE_TOWARDZERO},
                                   {Rounding::down, FE_DOWNWARD},
                                   {Rounding::up, FE_UPWARD}};

// Runs a step in a rounding mode of the host, restores the mode, and returns the exceptions raised.
template <class Step>
uint8_t on_host(int mode, const Step& step) {
  std::fesetround(mode);
  std::feclearexcept(FE_ALL_EXCEPT);
  step();
  const int raised = std::fetestexcept(FE_ALL_EXCEPT);
  std::fesetround(FE_TONEAREST);
  unsigned flags = 0;
  if ((raised & FE_INEXACT) != 0) flags |= flag_inexact;
  if ((raised & FE_UNDERFLOW) != 0) flags |= flag_underflow;
  if ((raised & FE_OVERFLOW) != 0) flags |= flag_overflow;
  if ((raised & FE_DIVBYZERO) != 0) flags |= flag_divide_by_zero;
  if ((raised & FE_INVALID) != 0) flags |= flag_invalid;
  return static_cast<uint8_t>(flags);
}

// x86-64 detects tininess after rounding, as RISC-V does; other hosts need not.
#if defined(__x86_64__)
constexpr uint8_t compared_flags = 31;
#else
constexpr uint8_t compared_flags = 31 & ~flag_underflow;
#endif

enum class Operation : uint8_t { add, multiply, divide, square_root, multiply_add };
constexpr Operation operations[] = {Operation::add, Operation::multiply, Operation::divide, Operation::square_root,
                                    Operation::multiply_add};

uint64_t soft(Operation operation, const FloatFormat& format, const uint64_t (&in)[3], FloatContext& context) {
  switch (operation) {
    case Operation::add: return float_add(format, in[0], in[1], context);
    case Operation::multiply: return float_multiply(format, in[0], in[1], context);
    case Operation::divide: return float_divide(format, in[0], in[1], context);
    case Operation::square_root: return float_square_root(format, in[0], context);
    case Operation::multiply_add: return float_multiply_add(format, in[0], in[1], in[2], context);
  }
  return 0;
}

// volatile, so that the compiler does not compute in another rounding mode.
template <class Number>
Number host(Operation operation, const volatile Number (&in)[3]) {
  const Number a = in[0];
  const Number b = in[1];
  const Number c = in[2];
  switch (operation) {
    case Operation::add: return a + b;
    case Operation::multiply: return a * b;
    case Operation::divide: return a / b;
    case Operation::square_root: return std::sqrt(a);
    case Operation::multiply_add: return std::fma(a, b, c);
  }
  return 0;
}

template <class Host>
void compare(Operation operation, const uint64_t (&in)[3], const HostMode& mode) {
  FloatContext context{mode.rounding, 0};
  const uint64_t found = soft(operation, Host::format, in, context);
  const volatile typename Host::Number operands[3] = {Host::number(in[0]), Host::number(in[1]), Host::number(in[2])};
  volatile typename Host::Number result = 0;
  const uint8_t flags = on_host(mode.mode, [&] { result = host(operation, operands); });
  const typename Host::Number number = result;
  const uint64_t expected = std::isnan(number) ? Host::format.canonical_nan() : Host::bits(number);
  ASSERT_EQ(found, expected) << "operation " << int(operation) << " mode " << int(mode.rounding) << std::hex << " of 0x"
                             << in[0] << " 0x" << in[1] << " 0x" << in[2];
  // For infinity times zero plus a quiet NaN, RISC-V raises invalid; the host may or may not.
  const bool free =
      operation == Operation::multiply_add && (in[2] & ~Host::format.sign_bit()) > Host::format.infinity();
  if (free) return;
  ASSERT_EQ(context.flags & compared_flags, flags & compared_flags)
      << "operation " << int(operation) << " mode " << int(mode.rounding) << std::hex << " of 0x" << in[0] << " 0x"
      << in[1] << " 0x" << in[2];
}

template <class Host>
void compare_random(uint64_t seed, int rounds) {
  Random random(seed, "soft-float");
  FloatOperands operands(random, Host::format);
  for (int i = 0; i < rounds; ++i) {
    uint64_t in[3] = {operands.next(), operands.next(), operands.next()};
    if (random.chance(1, 4)) in[1] = operands.near(in[0]);
    if (random.chance(1, 3)) {  // the addend cancels the product, or nearly
      in[2] = operands.near(Host::bits(-Host::number(in[0]) * Host::number(in[1])));
    }
    for (const Operation operation : operations) {
      for (const HostMode& mode : host_modes) {
        ASSERT_NO_FATAL_FAILURE(compare<Host>(operation, in, mode));
      }
    }
  }
}

TEST(SoftFloat, AgreesWithTheHostInFourModes) {
  const uint64_t seed = test_seed(1);
  SCOPED_TRACE(replay("SoftFloat.AgreesWithTheHostInFourModes", seed));
  compare_random<SingleHost>(seed, 40000);
  if (!testing::Test::HasFatalFailure()) compare_random<DoubleHost>(seed, 40000);
}

// Every pair of numbers with a short significand, in binades around one and at both ends of the range: sums and
// products of them are ties and neighbours of ties.
template <class Host>
void compare_short() {
  const FloatFormat& format = Host::format;
  std::vector<uint64_t> numbers;
  const int top = format.exponent_top();
  const int bias = format.bias();
  for (const int exponent :
       {0, 1, 2, bias - format.precision, bias - 1, bias, bias + 1, bias + format.precision, top - 1}) {
    for (const uint64_t fraction :
         {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{3}, format.quiet_bit(), format.quiet_bit() - 1,
          format.quiet_bit() + 1, 2 * format.quiet_bit() - 1, 2 * format.quiet_bit() - 2}) {
      const uint64_t bits = static_cast<uint64_t>(exponent) << format.fraction_bits() | fraction;
      numbers.push_back(bits);
      numbers.push_back(bits | format.sign_bit());
    }
  }
  for (const uint64_t a : numbers) {
    for (const uint64_t b : numbers) {
      for (const Operation operation : {Operation::add, Operation::multiply, Operation::divide}) {
        ASSERT_NO_FATAL_FAILURE(compare<Host>(operation, {a, b, 0}, host_modes[0]));
      }
    }
  }
}

TEST(SoftFloat, AgreesWithTheHostOnEveryPairOfShortNumbers) {
  compare_short<SingleHost>();
  compare_short<DoubleHost>();
}

// In each binade of binary32, subnormal ones too: binary64 numbers halfway between two neighbours, and a little
// beside, rounded to binary32.
TEST(SoftFloat, EveryBinadeRoundsTiesAsTheHost) {
  const uint64_t seed = test_seed(2);
  SCOPED_TRACE(replay("SoftFloat.EveryBinadeRoundsTiesAsTheHost", seed));
  Random random(seed, "ties");
  for (uint32_t binade = 0; binade < 255; ++binade) {
    for (int i = 0; i < 300; ++i) {
      const uint32_t low = binade << 23 | static_cast<uint32_t>(random.below(1u << 23));
      const double lower = SingleHost::number(low);
      const double upper = low + 1 == 0x7f800000u ? 0x1p128 : static_cast<double>(SingleHost::number(low + 1));
      const uint64_t middle = DoubleHost::bits((lower + upper) / 2);
      for (const uint64_t bits : {middle - 1, middle, middle + 1}) {
        FloatContext even;
        const volatile double exact = DoubleHost::number(bits);
        volatile float expected = 0;
        const uint8_t flags = on_host(FE_TONEAREST, [&] { expected = static_cast<float>(exact); });
        ASSERT_EQ(float_convert(double_format, single_format, bits, even), SingleHost::bits(expected))
            << std::hex << bits;
        ASSERT_EQ(even.flags & compared_flags, flags & compared_flags) << std::hex << bits;
        // Ties to away differ from ties to even only at ties, where they round up.
        FloatContext away{Rounding::nearest_away, 0};
        const uint64_t found = float_convert(double_format, single_format, bits, away);
        ASSERT_EQ(found, bits == middle ? uint64_t{low} + 1 : SingleHost::bits(expected)) << std::hex << bits;
        FloatContext negative{Rounding::nearest_away, 0};
        ASSERT_EQ(float_convert(double_format, single_format, bits | double_format.sign_bit(), negative),
                  found | single_format.sign_bit());
      }
    }
  }
}

TEST(SoftFloat, IntegersConvertAsOnTheHost) {
  const uint64_t seed = test_seed(3);
  SCOPED_TRACE(replay("SoftFloat.IntegersConvertAsOnTheHost", seed));
  Random random(seed, "integers");
  FloatOperands operands(random, double_format);
  for (int i = 0; i < 50000; ++i) {
    // Trailing zeros make ties at 24 bits.
    const auto whole = static_cast<uint32_t>(random.next() >> 32 << random.below(12) >> random.below(32));
    const uint64_t bits = operands.next();
    const double number = DoubleHost::number(bits);
    for (const HostMode& mode : host_modes) {
      FloatContext context{mode.rounding, 0};
      const volatile uint32_t in = whole;
      volatile float as_unsigned = 0;
      volatile float as_signed = 0;
      on_host(mode.mode, [&] { as_unsigned = static_cast<float>(in); });
      on_host(mode.mode, [&] { as_signed = static_cast<float>(static_cast<int32_t>(in)); });
      ASSERT_EQ(float_from_unsigned(single_format, whole, context), SingleHost::bits(as_unsigned)) << whole;
      ASSERT_EQ(float_from_signed(single_format, static_cast<int32_t>(whole), context), SingleHost::bits(as_signed));
      FloatContext exact{mode.rounding, 0};
      ASSERT_EQ(float_from_unsigned(double_format, whole, exact), DoubleHost::bits(static_cast<double>(whole)));
      ASSERT_EQ(exact.flags, 0);

      volatile double integral = 0;
      on_host(mode.mode, [&] { integral = std::nearbyint(number); });
      const double rounded = integral;
      const bool nan = std::isnan(rounded);
      FloatContext to_signed{mode.rounding, 0};
      const bool fits = rounded >= -0x1p31 && rounded < 0x1p31;
      const uint32_t expected = fits                 ? static_cast<uint32_t>(static_cast<int32_t>(rounded))
                                : nan || rounded > 0 ? 0x7fffffffu
                                                     : 0x80000000u;
      ASSERT_EQ(float_to_signed(double_format, bits, to_signed), expected) << std::hex << bits;
      ASSERT_EQ(to_signed.flags, !fits ? flag_invalid : rounded != number ? flag_inexact : 0) << std::hex << bits;
      FloatContext to_unsigned{mode.rounding, 0};
      const bool fits_unsigned = rounded >= 0 && rounded < 0x1p32;  // -0 does
      const uint32_t expected_unsigned = fits_unsigned        ? static_cast<uint32_t>(rounded)
                                         : nan || rounded > 0 ? UINT32_MAX
                                                              : 0;
      ASSERT_EQ(float_to_unsigned(double_format, bits, to_unsigned), expected_unsigned) << std::hex << bits;
      ASSERT_EQ(to_unsigned.flags, !fits_unsigned ? flag_invalid : rounded != number ? flag_inexact : 0);
    }
  }
}

TEST(SoftFloat, OrderAndClassesAreThoseOfTheHost) {
  const uint64_t seed = test_seed(4);
  SCOPED_TRACE(replay("SoftFloat.OrderAndClassesAreThoseOfTheHost", seed));
  Random random(seed, "order");
  FloatOperands operands(random, single_format);
  for (int i = 0; i < 50000; ++i) {
    const uint64_t a = operands.next();
    const uint64_t b = random.chance(1, 3) ? operands.near(a) : operands.next();
    const float x = SingleHost::number(a);
    const float y = SingleHost::number(b);
    FloatContext context;
    ASSERT_EQ(float_equal(single_format, a, b, context), x == y);
    ASSERT_EQ(float_less(single_format, a, b, context), x < y);
    ASSERT_EQ(float_less_equal(single_format, a, b, context), x <= y);
    if (!std::isnan(x) && !std::isnan(y) && x != y) {
      ASSERT_EQ(float_minimum(single_format, a, b, context), SingleHost::bits(std::min(x, y)));
      ASSERT_EQ(float_maximum(single_format, a, b, context), SingleHost::bits(std::max(x, y)));
    }
    uint32_t bit = 9;
    switch (std::fpclassify(x)) {
      case FP_INFINITE: bit = std::signbit(x) ? 0 : 7; break;
      case FP_NORMAL: bit = std::signbit(x) ? 1 : 6; break;
      case FP_SUBNORMAL: bit = std::signbit(x) ? 2 : 5; break;
      case FP_ZERO: bit = std::signbit(x) ? 3 : 4; break;
      default: bit = (a & single_format.quiet_bit()) != 0 ? 9 : 8; break;
    }
    ASSERT_EQ(float_classify(single_format, a), 1u << bit) << std::hex << a;
  }
}

TEST(SoftFloat, NanAndZeroRules) {
  const FloatFormat& f = single_format;
  const uint64_t minus_zero = f.sign_bit();
  const uint64_t one = 0x3f800000;
  const uint64_t quiet = 0x7fc12345;
  const uint64_t signaling = 0x7f812345;
  const auto flags_of = [](const auto& step) {
    FloatContext context;
    step(context);
    return int{context.flags};
  };
  FloatContext c;
  EXPECT_EQ(float_minimum(f, 0, minus_zero, c), minus_zero);
  EXPECT_EQ(float_maximum(f, minus_zero, 0, c), 0u);
  EXPECT_EQ(float_minimum(f, quiet, one, c), one);
  EXPECT_EQ(float_maximum(f, quiet, quiet, c), f.canonical_nan());
  EXPECT_EQ(c.flags, 0);
  EXPECT_EQ(flags_of([&](FloatContext& x) { EXPECT_EQ(float_minimum(f, signaling, one, x), one); }), flag_invalid);
  EXPECT_EQ(flags_of([&](FloatContext& x) { float_equal(f, quiet, one, x); }), 0);
  EXPECT_EQ(flags_of([&](FloatContext& x) { float_equal(f, signaling, one, x); }), flag_invalid);
  EXPECT_EQ(flags_of([&](FloatContext& x) { float_less(f, quiet, one, x); }), flag_invalid);
  // Infinity times zero is invalid, whatever number is added.
  EXPECT_EQ(flags_of([&](FloatContext& x) {
              EXPECT_EQ(float_multiply_add(f, f.infinity(), 0, quiet, x), f.canonical_nan());
            }),
            flag_invalid);
  EXPECT_EQ(flags_of([&](FloatContext& x) { float_divide(f, one, 0, x); }), flag_divide_by_zero);
  EXPECT_EQ(flags_of([&](FloatContext& x) { float_divide(f, 0, 0, x); }), flag_invalid);
  // x - x is +0, but -0 when rounding down.
  FloatContext down{Rounding::down, 0};
  EXPECT_EQ(float_add(f, one, one | f.sign_bit(), c), 0u);
  EXPECT_EQ(float_add(f, one, one | f.sign_bit(), down), minus_zero);
  EXPECT_EQ(float_square_root(f, minus_zero, c), minus_zero);
}

TEST(SoftFloat, TininessIsFoundAfterRounding) {
  // (1 + 2^-23) * (2^-126 - 2^-149) = 2^-126 - 2^-172: at 24 bits and without bounds it rounds to 2^-126, not tiny.
  FloatContext context;
  EXPECT_EQ(float_multiply(single_format, 0x3f800001, 0x007fffff, context), 0x00800000u);
  EXPECT_EQ(context.flags, flag_inexact);
  // (1 - 2^-24) * 2^-126 = 2^-126 - 2^-150: exact at 24 bits, tiny, and a tie at the subnormals' last bit.
  context = {};
  EXPECT_EQ(float_multiply(single_format, 0x3f7fffff, 0x00800000, context), 0x00800000u);
  EXPECT_EQ(context.flags, flag_inexact | flag_underflow);
}

}  // namespace
}  // namespace spinloom::hpu
