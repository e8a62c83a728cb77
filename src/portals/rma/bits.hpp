// Bits - the match bits of a context's messages.
//
// Contract: the two highest bits say what the others are: 0 a context's own places, 1 a key, of random bits. The others
//   are those of collective::Meeting, by which contexts open.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>

namespace spinloom::rma::bits {

inline constexpr uint64_t place(uint64_t number) { return number << 56; }
inline constexpr uint64_t barrier = place(1);  // | round
inline constexpr uint64_t board = place(2);  // what ranks tell all others
inline constexpr uint64_t requests = place(3);  // of the emulation
inline constexpr uint64_t answers = place(4);
inline constexpr uint64_t watch = place(5);  // matches nothing that is sent
inline constexpr uint64_t question = place(6);  // matches no entry: its answer says that what was sent before has come

[[nodiscard]] constexpr uint64_t key_of(uint64_t random) {
  constexpr uint64_t mark = uint64_t{1} << 62;
  return (random & (mark - 1)) | mark;
}

}  // namespace spinloom::rma::bits
