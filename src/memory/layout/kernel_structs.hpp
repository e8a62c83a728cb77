// Kernel structs - arrays of structs: a few runs of several lengths, repeated at a stride.
//
// Contract: a part of every kernel set (kernel_loops.hpp), which says what holds for all parts. Runs that lie close
//   together become windows: up to 64 bytes of one side that one permutation turns into bytes of the other. Each call
//   makes its windows first. All three functions return false, and have done nothing, where the runs need too many
//   windows, or where the instruction set has no permutation of bytes.
// Invariants: moves are masked, so that gaps between the runs are neither written nor read.
// Threads: pure. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "memory/layout/kernel_blocks.hpp"

namespace spinloom::layout {
namespace {

#if defined(__AVX512VBMI__) && defined(__BMI2__)

constexpr int64_t windows_min = 128;  // structs: what the windows save on fewer is less than what making them costs

alignas(64) constexpr uint8_t identity_order[64] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                                    16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
                                                    32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
                                                    48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

// Moves the bytes of a window that is 32 or 64 bytes wide.
template <int64_t width>
struct Lanes;

template <>
struct Lanes<64> {
  using Bytes = __m512i;
  using Mask = __mmask64;
  static SPL_FORCE_INLINE Bytes identity() { return _mm512_load_si512(identity_order); }
  static SPL_FORCE_INLINE Bytes shift(Bytes order, Mask where, char by) {
    return _mm512_mask_add_epi8(order, where, identity(), _mm512_set1_epi8(by));
  }
  static SPL_FORCE_INLINE void move(std::byte* to, Mask written, const std::byte* from, Mask read, Bytes order) {
    const Bytes bytes = _mm512_maskz_loadu_epi8(read, from);
    _mm512_mask_storeu_epi8(to, written, _mm512_maskz_permutexvar_epi8(written, order, bytes));
  }
};

template <>
struct Lanes<32> {
  using Bytes = __m256i;
  using Mask = __mmask32;
  static SPL_FORCE_INLINE Bytes identity() {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(identity_order));
  }
  static SPL_FORCE_INLINE Bytes shift(Bytes order, Mask where, char by) {
    return _mm256_mask_add_epi8(order, where, identity(), _mm256_set1_epi8(by));
  }
  static SPL_FORCE_INLINE void move(std::byte* to, Mask written, const std::byte* from, Mask read, Bytes order) {
    const Bytes bytes = _mm256_maskz_loadu_epi8(read, from);
    _mm256_mask_storeu_epi8(to, written, _mm256_maskz_permutexvar_epi8(written, order, bytes));
  }
};

template <int64_t width>
struct Window {
  using Mask = typename Lanes<width>::Mask;
  int64_t to;  // beginning of the window on each side, relative to the first struct of its group
  int64_t from;
  Mask written;
  Mask read;
  typename Lanes<width>::Bytes order;  // the place in the window of the byte read, for each byte written
};

template <int64_t width>
SPL_FORCE_INLINE typename Lanes<width>::Mask first_bytes(int64_t bytes) {
  return static_cast<typename Lanes<width>::Mask>(_bzhi_u64(~uint64_t{0}, static_cast<unsigned>(bytes)));
}

// The places of one side's fields: at the runs' offsets (Spread), or one behind the other (Dense).
template <class Run>
struct SpreadSide {
  const Run* runs;
  int64_t stride;
  SPL_FORCE_INLINE int64_t place(int64_t i) const { return runs[i].offset; }
};
template <class Run>
struct DenseSide {
  const Run* runs;
  int64_t stride;  // packed bytes of a struct
  SPL_FORCE_INLINE int64_t place(int64_t i) const { return static_cast<int64_t>(runs[i].start - runs->start); }
};

// Makes the windows of `structs` structs and returns their number, or 0 if more than `windows_max` would be needed.
template <int64_t width, class To, class From, class Run>
SPL_FORCE_INLINE int64_t make_windows(const To& to, const From& from, const Run* runs, int64_t count, int64_t structs,
                                      Window<width>* windows, int64_t windows_max) {
  using Mask = typename Lanes<width>::Mask;
  int64_t window_count = 0;
  Window<width> current{to.place(0), from.place(0), 0, 0, Lanes<width>::identity()};
  for (int64_t struct_index = 0; struct_index < structs; ++struct_index) {
    for (int64_t i = 0; i < count; ++i) {
      int64_t to_place = struct_index * to.stride + to.place(i);
      int64_t from_place = struct_index * from.stride + from.place(i);
      int64_t remaining = static_cast<int64_t>(runs[i + 1].start) - static_cast<int64_t>(runs[i].start);
      while (remaining > 0) {
        if (to_place < current.to || to_place >= current.to + width || from_place < current.from ||
            from_place >= current.from + width) {
          if (window_count + 1 == windows_max) return 0;
          windows[window_count++] = current;
          current = {to_place, from_place, 0, 0, Lanes<width>::identity()};
        }
        const int64_t to_at = to_place - current.to;
        const int64_t from_at = from_place - current.from;
        const int64_t room = width - (to_at > from_at ? to_at : from_at);
        const int64_t bytes = remaining < room ? remaining : room;
        const auto written = static_cast<Mask>(first_bytes<width>(bytes) << to_at);
        current.order = Lanes<width>::shift(current.order, written, static_cast<char>(from_at - to_at));
        current.written = static_cast<Mask>(current.written | written);
        current.read = static_cast<Mask>(current.read | (first_bytes<width>(bytes) << from_at));
        to_place += bytes;
        from_place += bytes;
        remaining -= bytes;
      }
    }
  }
  windows[window_count++] = current;
  return window_count;
}

template <int64_t width>
SPL_FORCE_INLINE void copy_window(const Window<width>& window, std::byte* to, const std::byte* from) {
  Lanes<width>::move(to + window.to, window.written, from + window.from, window.read, window.order);
}

// `window_count` is a constant here, so that the windows stay in registers.
template <int64_t window_count, int64_t width>
SPL_FORCE_INLINE void copy_groups(const Window<width>* source, std::byte* to, int64_t to_step, const std::byte* from,
                                  int64_t from_step, int64_t groups) {
  Window<width> windows[window_count];
  for (int64_t i = 0; i < window_count; ++i) windows[i] = source[i];
  for (; groups > 0; --groups) {
#pragma GCC unroll 4
    for (int64_t i = 0; i < window_count; ++i) copy_window(windows[i], to, from);
    advance(to, to_step);
    advance(from, from_step);
  }
}

template <int64_t width>
SPL_FORCE_INLINE void copy_windows(const Window<width>* windows, int64_t window_count, std::byte* to, int64_t to_step,
                                   const std::byte* from, int64_t from_step, int64_t structs) {
  if (window_count == 1) return copy_groups<1>(windows, to, to_step, from, from_step, structs);
  if (window_count == 2) return copy_groups<2>(windows, to, to_step, from, from_step, structs);
  if (window_count == 3) return copy_groups<3>(windows, to, to_step, from, from_step, structs);
  for (; structs > 0; --structs) {
    for (int64_t i = 0; i < window_count; ++i) copy_window(windows[i], to, from);
    advance(to, to_step);
    advance(from, from_step);
  }
}

// Returns the number of structs that fit into one window; more than 1 only if structs follow each other without
// overlapping. The runs of a struct may come in any order.
template <class Side, class Run>
SPL_FORCE_INLINE int64_t structs_in_window(const Side& side, const Run* runs, int64_t count) {
  const int64_t first = side.place(0);
  for (int64_t i = 0; i < count; ++i) {
    const auto bytes = static_cast<int64_t>(runs[i + 1].start) - static_cast<int64_t>(runs[i].start);
    if (side.place(i) < first || side.place(i) + bytes - first > side.stride) return 1;
  }
  return 64 / side.stride;
}

template <class To, class From, class Run>
SPL_FORCE_INLINE bool copy_structs(std::byte* to, const To& to_side, const std::byte* from, const From& from_side,
                                   const Run* runs, int64_t count, int64_t structs) {
  int64_t group_structs = structs_in_window(to_side, runs, count);
  const int64_t from_group_structs = structs_in_window(from_side, runs, count);
  if (from_group_structs < group_structs) group_structs = from_group_structs;
  if (group_structs > structs) group_structs = structs;
  if (group_structs > 1) {
    Window<64> window[1];
    if (make_windows<64>(to_side, from_side, runs, count, group_structs, window, 1) == 1) {
      const int64_t groups = structs / group_structs;
      copy_groups<1>(window, to, group_structs * to_side.stride, from, group_structs * from_side.stride, groups);
      if (const int64_t rest = structs - groups * group_structs; rest > 0) {
        window->written &= first_bytes<64>(rest * to_side.stride);
        window->read &= first_bytes<64>(rest * from_side.stride);
        copy_window(*window, to + groups * group_structs * to_side.stride,
                    from + groups * group_structs * from_side.stride);
      }
      return true;
    }
  }
  // Narrow windows are tried first because they cross lines less often.
  constexpr int64_t narrow_windows_max = 3;
  Window<32> narrow[narrow_windows_max];
  if (const int64_t window_count = make_windows<32>(to_side, from_side, runs, count, 1, narrow, narrow_windows_max);
      window_count > 0) {
    copy_windows(narrow, window_count, to, to_side.stride, from, from_side.stride, structs);
    return true;
  }
  constexpr int64_t wide_windows_max = 8;
  Window<64> wide[wide_windows_max];
  const int64_t window_count = make_windows<64>(to_side, from_side, runs, count, 1, wide, wide_windows_max);
  if (window_count > 0) copy_windows(wide, window_count, to, to_side.stride, from, from_side.stride, structs);
  return window_count > 0;
}

template <class Run>
bool pack_structs(std::byte* to, const std::byte* from, const Run* runs, int64_t count, int64_t structs,
                  int64_t stride) {
  const auto size = static_cast<int64_t>(runs[count].start - runs->start);
  return copy_structs(to, DenseSide<Run>{runs, size}, from, SpreadSide<Run>{runs, stride}, runs, count, structs);
}

template <class Run>
bool unpack_structs(std::byte* to, const std::byte* from, const Run* runs, int64_t count, int64_t structs,
                    int64_t stride) {
  const auto size = static_cast<int64_t>(runs[count].start - runs->start);
  return copy_structs(to, SpreadSide<Run>{runs, stride}, from, DenseSide<Run>{runs, size}, runs, count, structs);
}

template <class Run>
bool move_structs(std::byte* to, const Run* to_runs, int64_t to_stride, const std::byte* from, const Run* from_runs,
                  int64_t from_stride, int64_t count, int64_t structs) {
  return copy_structs(to, SpreadSide<Run>{to_runs, to_stride}, from, SpreadSide<Run>{from_runs, from_stride}, to_runs,
                      count, structs);
}

#else

constexpr int64_t windows_min = INT64_MAX;

template <class Run>
bool pack_structs(std::byte*, const std::byte*, const Run*, int64_t, int64_t, int64_t) {
  return false;
}

template <class Run>
bool unpack_structs(std::byte*, const std::byte*, const Run*, int64_t, int64_t, int64_t) {
  return false;
}

template <class Run>
bool move_structs(std::byte*, const Run*, int64_t, const std::byte*, const Run*, int64_t, int64_t, int64_t) {
  return false;
}

#endif

}  // namespace
}  // namespace spinloom::layout
