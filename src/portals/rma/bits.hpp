// Bits - the match bits of a context's messages.
//
// Contract: the two highest bits name the kind of the message. 0: one of the context's own places below. 1: a key, of
//   random bits. 2 and 3 belong to collective::Meeting, by which contexts open.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>

namespace spinloom::rma::bits {

inline constexpr uint64_t place(uint64_t number) { return number << 56; }
inline constexpr uint64_t barrier = place(1);  // combined with the number of the barrier's round
inline constexpr uint64_t board = place(2);  // the bytes of tell_all()
inline constexpr uint64_t requests = place(3);  // of the emulation
inline constexpr uint64_t answers = place(4);  // of the emulation
inline constexpr uint64_t watch = place(5);  // of entries that only count the loss of a rank: no message has them
inline constexpr uint64_t question = place(6);  // matches no entry: its answer says that what was sent before has come

[[nodiscard]] constexpr uint64_t key_of(uint64_t random) {
  constexpr uint64_t mark = uint64_t{1} << 62;
  return (random & (mark - 1)) | mark;
}

}  // namespace spinloom::rma::bits
