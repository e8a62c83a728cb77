// FloatOperands - random floating-point operands for tests, mostly values for which arithmetic is difficult.
//
// Contract: next() gives the bits of one number: zeros, infinities, NaNs of both kinds, subnormal and extreme
//   numbers, short significands (whose results are often halfway between two numbers), neighbours of powers of two.
//   near() gives a number that cancels with another, or lies close to it.
// Threads: one owner. Time: none.
#pragma once

#include <bit>
#include <cstring>
#include <vector>

#include "base/random.hpp"
#include "nic/hpu/soft_float.hpp"

namespace spinloom::hpu {

class FloatOperands {
 public:
  FloatOperands(Random& random, const FloatFormat& format) : random_(random), format_(format) {}

  uint64_t next() {
    const uint64_t sign = random_.chance(1, 2) ? format_.sign_bit() : 0;
    return sign | magnitude();
  }

  uint64_t near(uint64_t other) {
    const uint64_t distance = random_.below(3);
    const uint64_t close = random_.chance(1, 2) ? other + distance : other - distance;
    const uint64_t steps = random_.below(2 * static_cast<uint64_t>(format_.precision));
    const uint64_t scaled = random_.chance(1, 2) ? close : close + (steps << format_.fraction_bits());
    return (scaled & (2 * format_.sign_bit() - 1)) ^ (random_.chance(1, 2) ? format_.sign_bit() : 0);
  }

 private:
  uint64_t magnitude() {
    const uint64_t fraction_mask = (uint64_t{1} << format_.fraction_bits()) - 1;
    const uint64_t random_fraction = random_.next() & fraction_mask;
    const uint64_t one = static_cast<uint64_t>(format_.bias()) << format_.fraction_bits();
    const uint64_t exponent = random_.below(static_cast<uint64_t>(format_.exponent_top()));
    switch (random_.below(12)) {
      case 0: {
        const uint64_t specials[] = {0,
                                     1,
                                     fraction_mask,
                                     fraction_mask + 1,
                                     format_.infinity(),
                                     format_.infinity() - 1,
                                     format_.canonical_nan(),
                                     format_.infinity() | 1,
                                     one,
                                     one + 1,
                                     one - 1,
                                     format_.canonical_nan() | random_fraction};
        return specials[random_.below(std::size(specials))];
      }
      case 1: return random_fraction >> random_.below(static_cast<uint64_t>(format_.fraction_bits()));  // subnormal
      case 2: return format_.infinity() - 1 - (random_fraction >> random_.below(20));                   // large
      case 3: return (uint64_t{1} << format_.fraction_bits()) + (random_fraction >> random_.below(20));  // small
      case 4:
      case 5:
        return exponent << format_.fraction_bits() | (random_fraction & ~(fraction_mask >> 1 >> random_.below(8)));
      case 6: return (exponent << format_.fraction_bits()) + random_.below(3);  // near a power of two
      case 7: {  // near integers of 32 bits and their halves
        const uint64_t binade = static_cast<uint64_t>(format_.bias()) - 2 + random_.below(37);
        const uint64_t kept = random_.below(static_cast<uint64_t>(format_.fraction_bits()));
        return binade << format_.fraction_bits() | (random_fraction & ~(fraction_mask >> kept));
      }
      case 8: return exponent << format_.fraction_bits() | random_fraction;
      default: {  // near one
        const uint64_t binade = static_cast<uint64_t>(format_.bias()) - 30 + random_.below(60);
        return binade << format_.fraction_bits() | random_fraction;
      }
    }
  }

  Random& random_;
  const FloatFormat& format_;
};

// Fills memory with numbers of both formats; single-precision numbers are boxed.
inline void fill_with_numbers(Random& random, std::vector<uint8_t>& memory) {
  FloatOperands singles(random, single_format);
  FloatOperands doubles(random, double_format);
  for (size_t at = 0; at + sizeof(uint64_t) <= memory.size(); at += sizeof(uint64_t)) {
    const uint64_t bits = random.chance(1, 2) ? doubles.next() : 0xffffffff00000000u | singles.next();
    std::memcpy(memory.data() + at, &bits, sizeof bits);
  }
}

}  // namespace spinloom::hpu
