// Bits - the match bits of a context's messages.
//
// Contract: the two highest bits name the kind of the message. 0: one of the context's own entries below. 1: a key, of
//   random bits. 2 and 3 belong to collective::Meeting, by which contexts open.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>

namespace spinloom::rma::bits {

inline constexpr uint64_t control_bits(uint64_t number) { return number << 56; }
inline constexpr uint64_t barrier = control_bits(1);  // combined with the number of the barrier's round
inline constexpr uint64_t allgather = control_bits(2);  // the bytes of allgather()
inline constexpr uint64_t requests = control_bits(3);  // the emulation's messages
inline constexpr uint64_t answers = control_bits(4);  // the answers to them
inline constexpr uint64_t watch =
    control_bits(5);  // entries that only count the loss of a rank: no message has these bits
inline constexpr uint64_t question =
    control_bits(6);  // matches no entry: its answer says that what was sent before has come

[[nodiscard]] constexpr uint64_t key_of(uint64_t random) {
  constexpr uint64_t mark = uint64_t{1} << 62;
  return (random & (mark - 1)) | mark;
}

}  // namespace spinloom::rma::bits
