// The round of SipHash over words, or over vectors whose elements are words of states side by side.
//
// Threads: pure. Time: none.
#pragma once

#include <array>
#include <cstdint>

#include "nic/wire/siphash.hpp"

namespace spinloom::wire {

// Everything here is always inlined: the work is less than the cost of a call, and the caller's processor decides.
template <class Word>
struct SipState {
  Word v0, v1, v2, v3;

  [[gnu::always_inline]] static void rotate(Word& word, int by) { word = (word << by) | (word >> (64 - by)); }
  [[gnu::always_inline]] void round() {
    v0 += v1;
    v2 += v3;
    rotate(v1, 13);
    rotate(v3, 16);
    v1 ^= v0;
    v3 ^= v2;
    rotate(v0, 32);
    v2 += v1;
    v0 += v3;
    rotate(v1, 17);
    rotate(v3, 21);
    v1 ^= v2;
    v3 ^= v0;
    rotate(v2, 32);
  }
  [[gnu::always_inline]] void absorb(const Word& word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
};

// `domain` keeps uses of one key apart (domain separation); SipHash-2-4 itself has 0.
[[nodiscard]] inline SipState<uint64_t> begin_sip(const SipKey& key, uint64_t domain) {
  return {key.low ^ 0x736f6d6570736575, key.high ^ 0x646f72616e646f6d ^ domain, key.low ^ 0x6c7967656e657261,
          key.high ^ 0x7465646279746573};
}

[[nodiscard]] inline uint64_t end_sip(SipState<uint64_t> state) {
  state.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) state.round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace spinloom::wire
