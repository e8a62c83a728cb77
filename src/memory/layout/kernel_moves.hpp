// Kernel moves - arrays of structs: a few moves of 1 to 32 bytes, repeated at a stride on either side.
//
// Contract: a part of every kernel set (kernel_loops.hpp), which says what holds for all parts. One loop for each
//   sequence of lengths, so that a struct costs a load and a store a move, as in a loop written for its fields.
// Invariants: all moves of a struct are read before the first is written.
// Threads: pure. Time: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "memory/layout/kernel_blocks.hpp"

namespace spinloom::layout {
namespace {

template <int64_t bytes>
struct MoveRegister {
  unsigned char value __attribute__((vector_size(bytes)));
  SPL_FORCE_INLINE void load(const std::byte* from) { __builtin_memcpy(&value, from, bytes); }
  SPL_FORCE_INLINE void store(std::byte* to) const { __builtin_memcpy(to, &value, bytes); }
};
template <>
struct MoveRegister<0> {
  SPL_FORCE_INLINE void load(const std::byte*) {}
  SPL_FORCE_INLINE void store(std::byte*) const {}
};

template <int64_t a, int64_t b, int64_t c, int64_t d>
void copy_moves(std::byte* to, const std::byte* from, int64_t structs, const MoveSide& to_side,
                const MoveSide& from_side) {
  // Kept in registers: the compiler must expect that a store through `to` changes the sides.
  const int64_t to_step = to_side.step;
  const int64_t to_b = to_side.next[0], to_c = to_side.next[1], to_d = to_side.next[2];
  const int64_t from_step = from_side.step;
  const int64_t from_b = from_side.next[0], from_c = from_side.next[1], from_d = from_side.next[2];
  to += to_side.first;
  from += from_side.first;
  for (; structs > 0; --structs) {
    MoveRegister<a> first;
    MoveRegister<b> second;
    MoveRegister<c> third;
    MoveRegister<d> fourth;
    first.load(from);
    second.load(from + from_b);
    third.load(from + from_c);
    fourth.load(from + from_d);
    first.store(to);
    second.store(to + to_b);
    third.store(to + to_c);
    fourth.store(to + to_d);
    advance(to, to_step);
    advance(from, from_step);
  }
}

constexpr int64_t move_length(size_t digit) { return digit == 0 ? 0 : int64_t{1} << (digit - 1); }

// True if the set below makes other code of a struct with moves of these lengths, ORed.
#if defined(__AVX512F__)
constexpr bool has_own_moves(int64_t) { return false; }
#elif defined(__AVX2__)
constexpr bool has_own_moves(int64_t lengths) { return (lengths & 32) != 0; }
#else
constexpr bool has_own_moves(int64_t) { return true; }
#endif

template <int64_t a, int64_t b, int64_t c, int64_t d>
constexpr MovesKernel kernel_of_moves() {
  if constexpr (has_own_moves(a | b | c | d)) {
    return &copy_moves<a, b, c, d>;
  } else {
    return nullptr;
  }
}

template <size_t number>
constexpr MovesKernel moves_of() {
  if constexpr (number >= 7 * 7 * 7) {
    constexpr size_t rest = number - 7 * 7 * 7;
    return kernel_of_moves<4 << rest / 27, 4 << rest / 9 % 3, 4 << rest / 3 % 3, 4 << rest % 3>();
  } else if constexpr (number >= 7 * 7 && (number / 7 % 7 != 0 || number % 7 == 0)) {
    return kernel_of_moves<move_length(number / 49), move_length(number / 7 % 7), move_length(number % 7), 0>();
  } else {
    return nullptr;  // a length of 0 before a move: no such sequence is used
  }
}

template <size_t... number>
constexpr std::array<MovesKernel, moves_kernel_count> all_moves(std::index_sequence<number...>) {
  return {{moves_of<number>()...}};
}

}  // namespace
}  // namespace spinloom::layout
