// Kernel transposes - matrices of small elements turned over, in squares of whole vectors in registers.
//
// Contract: a part of every kernel set (kernel_loops.hpp), which says what holds for all parts.
// Threads: pure. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "memory/layout/kernel_blocks.hpp"

namespace spinloom::layout {
namespace {

#if defined(__AVX512F__)
constexpr int64_t vector_bytes = 64;
#elif defined(__AVX2__)
constexpr int64_t vector_bytes = 32;
#else
constexpr int64_t vector_bytes = 16;
#endif

template <int64_t bytes>
struct LaneOf {
  using Type = uint64_t;  // elements of 8 bytes; those of 16 are pairs of lanes
};
template <>
struct LaneOf<1> {
  using Type = uint8_t;
};
template <>
struct LaneOf<2> {
  using Type = uint16_t;
};
template <>
struct LaneOf<4> {
  using Type = uint32_t;
};

template <int64_t element>
struct Square {
  using Lane = typename LaneOf<element>::Type;
  // Bytes of a row. Small elements have shorter rows, because their squares would not fit into registers.
  static constexpr int64_t bytes = element <= 2 ? 16 : vector_bytes;
  static constexpr int64_t lanes = bytes / static_cast<int64_t>(sizeof(Lane));
  static constexpr int64_t side = bytes / element;
  typedef Lane Vector __attribute__((vector_size(bytes)));
};

// Interleaves the elements of the low (high) halves of a and b: returns the lane of the pair (a, b) that becomes lane
// `lane` of the result.
template <int64_t element>
constexpr int zip_lane(int64_t lane, bool high) {
  using S = Square<element>;
  const int64_t width = S::lanes / S::side;  // lanes of one element
  const int64_t place = lane / width;
  const int64_t source = (high ? S::side / 2 : 0) + place / 2;
  return static_cast<int>((place % 2) * S::lanes + source * width + lane % width);
}

template <int64_t element, bool high, size_t... lane>
SPL_FORCE_INLINE typename Square<element>::Vector zip(typename Square<element>::Vector a,
                                                      typename Square<element>::Vector b,
                                                      std::index_sequence<lane...>) {
  return __builtin_shufflevector(a, b, zip_lane<element>(static_cast<int64_t>(lane), high)...);
}

// Transposes a square: zips row i with row i + side / 2, log2(side) times.
template <int64_t element>
SPL_FORCE_INLINE void transpose_square(std::byte* to, int64_t to_pitch, const std::byte* from, int64_t from_pitch) {
  using S = Square<element>;
  using V = typename S::Vector;
  constexpr auto all = std::make_index_sequence<static_cast<size_t>(S::lanes)>();
  V rows[S::side];
#pragma GCC unroll 64
  for (int64_t i = 0; i < S::side; ++i) __builtin_memcpy(&rows[i], from + i * from_pitch, S::bytes);
#pragma GCC unroll 6
  for (int64_t stage = 1; stage < S::side; stage *= 2) {
    V next[S::side];
#pragma GCC unroll 32
    for (int64_t i = 0; i < S::side / 2; ++i) {
      next[2 * i] = zip<element, false>(rows[i], rows[i + S::side / 2], all);
      next[2 * i + 1] = zip<element, true>(rows[i], rows[i + S::side / 2], all);
    }
#pragma GCC unroll 64
    for (int64_t i = 0; i < S::side; ++i) rows[i] = next[i];
  }
#pragma GCC unroll 64
  for (int64_t i = 0; i < S::side; ++i) __builtin_memcpy(to + i * to_pitch, &rows[i], S::bytes);
}

template <int64_t element>
void transpose_small(std::byte* to, int64_t to_pitch, const std::byte* from, int64_t from_pitch, int64_t rows,
                     int64_t columns) {
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i)
      move<element>(to + j * to_pitch + i * element, from + i * from_pitch + j * element);
  }
}

// Transposes elements of 16 bytes where rows do not begin at lines. Each line to be written is put together from four
// rows, so that only its two ends, and nothing that is read, may cross a line. This reads and writes further apart
// than squares do, and is only worth it up to pairs_bytes_max.
constexpr int64_t pairs_bytes_max = 2 << 20;

[[gnu::noinline]] void transpose_pairs(std::byte* to, int64_t to_pitch, const std::byte* from, int64_t from_pitch,
                                       int64_t rows, int64_t columns) {
  constexpr int64_t element = 16;
  constexpr int64_t line = 64 / element;
  constexpr int64_t strip = 16;
  constexpr int64_t tile = 32;  // rows whose part of a strip stays in the first-level cache
  typedef uint64_t Pair __attribute__((vector_size(element), aligned(1), may_alias));
  const auto load = [](const std::byte* at) { return *reinterpret_cast<const Pair*>(at); };
  for (int64_t first = 0; first < columns; first += strip) {
    const int64_t last = first + strip < columns ? first + strip : columns;
    for (int64_t row = 0; row < rows; row += tile) {
      for (int64_t j = first; j < last; ++j) {
        std::byte* const t = to + j * to_pitch;
        const std::byte* const f = from + j * element;
        const int64_t head = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(t) & 63) / element;
        int64_t i = row == 0 ? 0 : row + head;
        int64_t end = row + tile + head;
        if (row + tile >= rows || end > rows) end = rows;
        for (; i < head && i < end; ++i) move<element>(t + i * element, f + i * from_pitch);
        for (; i + line <= end; i += line) {
          const std::byte* const g = f + i * from_pitch;
#if defined(__AVX512F__)
          const auto low = __builtin_shufflevector(load(g), load(g + from_pitch), 0, 1, 2, 3);
          const auto high = __builtin_shufflevector(load(g + 2 * from_pitch), load(g + 3 * from_pitch), 0, 1, 2, 3);
          const auto line_vector = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
          __builtin_memcpy(t + i * element, &line_vector, sizeof line_vector);
#else  // a vector that no register holds would be put together in memory
          const Pair pairs[line] = {load(g), load(g + from_pitch), load(g + 2 * from_pitch), load(g + 3 * from_pitch)};
#pragma GCC unroll 4
          for (int64_t k = 0; k < line; ++k)
            move<element>(t + (i + k) * element, reinterpret_cast<const std::byte*>(&pairs[k]));
#endif
        }
        for (; i < end; ++i) move<element>(t + i * element, f + i * from_pitch);
      }
    }
  }
}

// A square that does not fit at an edge moves back over its neighbours: copying a byte twice does no harm.
template <int64_t element>
void transpose(std::byte* to, int64_t to_pitch, const std::byte* from, int64_t from_pitch, int64_t rows,
               int64_t columns) {
  constexpr int64_t side = Square<element>::side;
  constexpr int64_t strip = 256 / element;  // columns at a time, so that a strip takes a few lines of each row
  if constexpr (element == 16) {
    const bool crosses = ((to_pitch | from_pitch) & 63) != 0;
    if (crosses && rows * columns <= pairs_bytes_max / element) {
      return transpose_pairs(to, to_pitch, from, from_pitch, rows, columns);
    }
  }
  if (rows < side || columns < side) {
    return transpose_small<element>(to, to_pitch, from, from_pitch, rows, columns);
  }
  for (int64_t first = 0; first < columns; first += strip) {
    const int64_t last = first + strip < columns ? first + strip : columns;
    for (int64_t row = 0; row < rows; row += side) {
      const int64_t i = row + side <= rows ? row : rows - side;
      for (int64_t column = first; column < last; column += side) {
        const int64_t j = column + side <= columns ? column : columns - side;
        transpose_square<element>(to + j * to_pitch + i * element, to_pitch, from + i * from_pitch + j * element,
                                  from_pitch);
      }
    }
  }
}

}  // namespace
}  // namespace spinloom::layout
