// Random - the seeded generator of all random numbers: xoshiro256** (Blackman, Vigna), seeded by splitmix64.
//
// Contract: the seed and the name of a stream begin a sequence. Every consumer has a stream of its own, so that a new
//   consumer does not change the numbers of the others.
// Invariants: (1) the sequence depends on (seed, stream) only, on every machine; (2) below(n) is unbiased
//   (rejection).
// Threads: one owner each. Time: none.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/assert.hpp"

namespace spinloom {

class Random {
 public:
  explicit Random(uint64_t seed, std::string_view stream = "");

  uint64_t next();
  // Uniform in [0, bound); bound > 0.
  uint64_t below(uint64_t bound);
  // Uniform in [low, high], both included.
  int64_t between(int64_t low, int64_t high);
  bool chance(uint64_t numerator, uint64_t denominator) { return below(denominator) < numerator; }

  // Shuffles any indexable sequence (Fisher-Yates).
  template <class Sequence>
  void shuffle(Sequence& sequence) {
    for (uint64_t i = sequence.size(); i > 1; --i) std::swap(sequence[i - 1], sequence[below(i)]);
  }

 private:
  std::array<uint64_t, 4> state_{};
};

}  // namespace spinloom
