// Kernel structs - a few runs of several lengths, and the same again at a stride: arrays of structs.
//
// Contract: a part of every kernel set (kernel_loops.hpp), which says what holds for all parts. Runs that lie close
//   together become windows: up to 64 bytes of memory that one permutation turns into packed bytes, or back. The windows
//   are made at the beginning of a call. pack_structs and unpack_structs return false, and have done nothing, where the
//   runs need too many windows, or where the instruction set has no permutation of bytes.
// Invariants: moves are masked: what lies between the runs is neither written nor read.
// Threads: pure. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "layout/kernel_blocks.hpp"

namespace spinloom::layout {
namespace {

#if defined(__AVX512VBMI__) && defined(__BMI2__)

alignas(64) constexpr uint8_t window_places[64] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                                   16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
                                                   32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
                                                   48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

// How the bytes of a window move; its width is 32 or 64 bytes.
template <int64_t width>
struct Lanes;

template <>
struct Lanes<64> {
  using Bytes = __m512i;
  using Mask = __mmask64;
  static SPL_FORCE_INLINE Bytes in_order() { return _mm512_load_si512(window_places); }
  static SPL_FORCE_INLINE Bytes shift(Bytes order, Mask where, char by) {
    return _mm512_mask_add_epi8(order, where, in_order(), _mm512_set1_epi8(by));
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
  static SPL_FORCE_INLINE Bytes in_order() {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(window_places));
  }
  static SPL_FORCE_INLINE Bytes shift(Bytes order, Mask where, char by) {
    return _mm256_mask_add_epi8(order, where, in_order(), _mm256_set1_epi8(by));
  }
  static SPL_FORCE_INLINE void move(std::byte* to, Mask written, const std::byte* from, Mask read, Bytes order) {
    const Bytes bytes = _mm256_maskz_loadu_epi8(read, from);
    _mm256_mask_storeu_epi8(to, written, _mm256_maskz_permutexvar_epi8(written, order, bytes));
  }
};

template <int64_t width>
struct Window {
  using Mask = typename Lanes<width>::Mask;
  int64_t memory;  // where it begins, from the first struct of its group
  int64_t packed;
  Mask in_memory;
  Mask in_packed;
  typename Lanes<width>::Bytes order;  // for each byte written, which of those read
};

template <int64_t width>
SPL_FORCE_INLINE typename Lanes<width>::Mask first_bytes(int64_t bytes) {
  return static_cast<typename Lanes<width>::Mask>(_bzhi_u64(~uint64_t{0}, static_cast<unsigned>(bytes)));
}

// The windows of `structs` structs, `stride` apart; 0: there are more than `most`.
template <Mode mode, int64_t width, class Run>
SPL_FORCE_INLINE int64_t make_windows(const Run* runs, int64_t count, int64_t structs, int64_t stride,
                                      Window<width>* windows, int64_t most) {
  using Mask = typename Lanes<width>::Mask;
  const auto first = static_cast<int64_t>(runs->start);
  const int64_t size = static_cast<int64_t>(runs[count].start) - first;
  int64_t made = 0;
  Window<width> open{runs->offset, 0, 0, 0, Lanes<width>::in_order()};
  for (int64_t one = 0; one < structs; ++one) {
    for (int64_t i = 0; i < count; ++i) {
      int64_t memory = one * stride + runs[i].offset;
      int64_t packed = one * size + (static_cast<int64_t>(runs[i].start) - first);
      int64_t left = static_cast<int64_t>(runs[i + 1].start) - static_cast<int64_t>(runs[i].start);
      while (left > 0) {
        if (memory < open.memory || memory >= open.memory + width || packed >= open.packed + width) {
          if (made + 1 == most) return 0;
          windows[made++] = open;
          open = {memory, packed, 0, 0, Lanes<width>::in_order()};
        }
        const int64_t at = memory - open.memory;
        const int64_t packed_at = packed - open.packed;
        const int64_t room = width - (at > packed_at ? at : packed_at);
        const int64_t bytes = left < room ? left : room;
        const auto here = static_cast<Mask>(first_bytes<width>(bytes) << at);
        const auto there = static_cast<Mask>(first_bytes<width>(bytes) << packed_at);
        const auto by = static_cast<char>(mode == Mode::pack ? at - packed_at : packed_at - at);
        open.order = Lanes<width>::shift(open.order, mode == Mode::pack ? there : here, by);
        open.in_memory = static_cast<Mask>(open.in_memory | here);
        open.in_packed = static_cast<Mask>(open.in_packed | there);
        memory += bytes;
        packed += bytes;
        left -= bytes;
      }
    }
  }
  windows[made++] = open;
  return made;
}

template <Mode mode, int64_t width>
SPL_FORCE_INLINE void copy_window(const Window<width>& window, std::byte* packed, std::byte* memory) {
  std::byte* const here = packed + window.packed;
  std::byte* const there = memory + window.memory;
  if constexpr (mode == Mode::pack) {
    Lanes<width>::move(here, window.in_packed, there, window.in_memory, window.order);
  } else {
    Lanes<width>::move(there, window.in_memory, here, window.in_packed, window.order);
  }
}

// So few windows that they stay in registers.
template <Mode mode, int64_t made, int64_t width>
SPL_FORCE_INLINE void copy_groups(const Window<width>* given, std::byte* packed, int64_t size, std::byte* memory,
                                  int64_t stride, int64_t groups) {
  Window<width> windows[made];
  for (int64_t i = 0; i < made; ++i) windows[i] = given[i];
  for (; groups > 0; --groups) {
#pragma GCC unroll 4
    for (int64_t i = 0; i < made; ++i) copy_window<mode>(windows[i], packed, memory);
    packed += size;
    memory += stride;
  }
}

template <Mode mode, int64_t width>
SPL_FORCE_INLINE void copy_all(const Window<width>* windows, int64_t made, std::byte* packed, int64_t size,
                               std::byte* memory, int64_t stride, int64_t structs) {
  if (made == 1) return copy_groups<mode, 1>(windows, packed, size, memory, stride, structs);
  if (made == 2) return copy_groups<mode, 2>(windows, packed, size, memory, stride, structs);
  if (made == 3) return copy_groups<mode, 3>(windows, packed, size, memory, stride, structs);
  for (; structs > 0; --structs) {
    for (int64_t i = 0; i < made; ++i) copy_window<mode>(windows[i], packed, memory);
    packed += size;
    memory += stride;
  }
}

template <Mode mode, class Run>
SPL_FORCE_INLINE bool copy_structs(std::byte* packed, std::byte* memory, const Run* runs, int64_t count,
                                   int64_t structs, int64_t stride) {
  const auto size = static_cast<int64_t>(runs[count].start - runs->start);
  const int64_t last =
      static_cast<int64_t>(runs[count - 1].offset) + static_cast<int64_t>(runs[count].start - runs[count - 1].start);
  // Several structs share a window where they lie one behind the other.
  if (stride > 0 && stride <= 32 && last - runs->offset <= stride) {
    Window<64> window[1];
    const int64_t group = 64 / stride < structs ? 64 / stride : structs;
    if (make_windows<mode, 64>(runs, count, group, stride, window, 1) == 1) {
      const int64_t groups = structs / group;
      copy_groups<mode, 1>(window, packed, group * size, memory, group * stride, groups);
      if (const int64_t rest = structs - groups * group; rest > 0) {
        window->in_packed &= first_bytes<64>(rest * size);
        window->in_memory &= first_bytes<64>(rest * stride);
        copy_window<mode>(*window, packed + groups * group * size, memory + groups * group * stride);
      }
      return true;
    }
  }
  // Narrow windows meet the ends of lines less often.
  constexpr int64_t narrow_most = 3;
  Window<32> narrow[narrow_most];
  if (const int64_t made = make_windows<mode, 32>(runs, count, 1, stride, narrow, narrow_most); made > 0) {
    copy_all<mode>(narrow, made, packed, size, memory, stride, structs);
    return true;
  }
  constexpr int64_t wide_most = 8;
  Window<64> wide[wide_most];
  const int64_t made = make_windows<mode, 64>(runs, count, 1, stride, wide, wide_most);
  if (made > 0) copy_all<mode>(wide, made, packed, size, memory, stride, structs);
  return made > 0;
}

#else

template <Mode mode, class Run>
SPL_FORCE_INLINE bool copy_structs(std::byte*, std::byte*, const Run*, int64_t, int64_t, int64_t) {
  return false;
}

#endif

template <class Run>
bool pack_structs(std::byte* to, const std::byte* from, const Run* runs, int64_t count, int64_t structs,
                  int64_t stride) {
  return copy_structs<Mode::pack>(to, const_cast<std::byte*>(from), runs, count, structs, stride);
}

template <class Run>
bool unpack_structs(std::byte* to, const std::byte* from, const Run* runs, int64_t count, int64_t structs,
                    int64_t stride) {
  return copy_structs<Mode::unpack>(const_cast<std::byte*>(from), to, runs, count, structs, stride);
}

}  // namespace
}  // namespace spinloom::layout
