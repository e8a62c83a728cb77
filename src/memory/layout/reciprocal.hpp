// Reciprocal - the multiplier and shift that replace a division in a walker.
//
// Contract: n / divisor = ((2 n * multiplier) >> bits) >> shift exactly, for 0 <= n < 2^(bits-1) and
//   1 <= divisor < 2^(bits-1); the proof stands in include/spinloom/layout_walk.h.
// Threads: pure. Time: none.
#pragma once

#include <bit>
#include <cstdint>

#include "base/assert.hpp"

namespace spinloom::layout {

struct Reciprocal {
  uint64_t multiplier = 0;
  uint32_t shift = 0;

  // `bits` is 32 (narrow) or 64 (wide). A divisor of 0, at a level without equal blocks, gives an empty Reciprocal.
  static Reciprocal of(uint64_t divisor, uint32_t bits) {
    if (divisor == 0) return {};
    SPL_ASSERT(divisor < uint64_t{1} << (bits - 1), "divisor ", divisor, " for ", bits, " bits");
    const auto shift = static_cast<uint32_t>(std::bit_width(divisor - 1));
    const unsigned __int128 power = static_cast<unsigned __int128>(1) << (bits - 1 + shift);
    return {static_cast<uint64_t>((power + divisor - 1) / divisor), shift};
  }
  bool operator==(const Reciprocal&) const = default;
};

}  // namespace spinloom::layout
