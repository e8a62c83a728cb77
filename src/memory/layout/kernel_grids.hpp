// Kernel grids - rows of blocks at a stride: packed, unpacked, from stride to stride, and past the caches.
//
// Contract: a part of every kernel set (kernel_loops.hpp), which says what holds for all parts.
// Threads: pure. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "memory/layout/kernel_blocks.hpp"

namespace spinloom::layout {
namespace {

// Blocks of up to far_bytes that lie further apart than far_bytes are prefetched, in rows of at least 2 * ahead_blocks.
// Blocks below far_block_min are not: the core's own window reaches as far ahead as the prefetch would, and each
// prefetch costs a load. Blocks that are packed are prefetched only if the lines of all come from beyond the
// second-level cache: the window hides the way from there, and blocks at a large power of two share a set of the
// first-level cache, out of which prefetches would push each other.
constexpr int64_t far_bytes = 256;
constexpr int64_t far_lines_bytes = int64_t{256} << 10;
constexpr int64_t far_block_min = 24;
constexpr int64_t ahead_blocks = 16;

// Lines that lie a multiple of two_sets_bytes apart share at most two sets of the first-level cache, and lines that lie
// a multiple of four_sets_bytes apart at most four. A core asks early for the lines of all stores in its buffer, some
// 64; more of a set than it has ways push each other out, and each store then waits by itself. So every
// stores_in_buffer blocks the buffer is emptied. Microseconds to unpack on a Zen 5 before and now: 512 blocks of 64 B,
// 4 KiB apart, 3.5, 1.5; 2 KiB 2.5, 0.9; 128 of 8 B, 8 KiB apart, 0.92, 0.30; 65,536 of 8 B, 1 KiB apart, 355, 301.
// Where blocks are prefetched, four sets are enough: 65,536 of 64 B, 1 KiB apart, took 285 and 315.
constexpr int64_t two_sets_bytes = 2048;
constexpr int64_t four_sets_bytes = 1024;
constexpr int64_t stores_in_buffer = 8;

enum class RowVariant : uint8_t { plain, prefetch, drain };

SPL_FORCE_INLINE void drain_stores() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

#if defined(__AVX512F__)
// Packs blocks of 4 or 8 bytes with gaps as long as a block: two vectors read, gaps included, give one written. Returns
// the number of blocks packed; at least one is left.
template <int64_t size>
SPL_FORCE_INLINE int64_t pack_every_other(std::byte* to, const std::byte* from, int64_t blocks) {
  constexpr int64_t lanes = 64 / size;
  int64_t packed_blocks = 0;
  for (; packed_blocks + lanes < blocks;
       packed_blocks += lanes) {  // the gap behind the last block may not belong to the message
    const std::byte* const f = from + packed_blocks * 2 * size;
    const __m512i a = _mm512_loadu_si512(f);
    const __m512i b = _mm512_loadu_si512(f + 64);
    __m512i packed;
    if constexpr (size == 8) {
      packed = _mm512_permutex2var_epi64(a, _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0), b);
    } else {
      packed =
          _mm512_permutex2var_epi32(a, _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0), b);
    }
    _mm512_storeu_si512(to + packed_blocks * size, packed);
  }
  return packed_blocks;
}
#endif

// Gathers four blocks of 8 bytes, or eight of 4, for one store.
template <int64_t size>
SPL_FORCE_INLINE void gather_into_vector(std::byte* to, const std::byte* from, int64_t step) {
  using Lane = std::conditional_t<size == 8, uint64_t, uint32_t>;
  typedef Lane Vector __attribute__((vector_size(32)));
  Lane lane[32 / size];
#pragma GCC unroll 8
  for (int64_t i = 0; i < 32 / size; ++i) __builtin_memcpy(&lane[i], from + i * step, size);
  Vector all;
  if constexpr (size == 8) {
    all = Vector{lane[0], lane[1], lane[2], lane[3]};
  } else {
    all = Vector{lane[0], lane[1], lane[2], lane[3], lane[4], lane[5], lane[6], lane[7]};
  }
  __builtin_memcpy(to, &all, sizeof all);
}

template <class Block, Mode mode, RowVariant variant>
SPL_FORCE_INLINE void copy_row(const Block& block, std::byte* t, int64_t to_step, const std::byte* f, int64_t from_step,
                               int64_t remaining) {
  for (; !Block::is_long && remaining >= 4; remaining -= 4) {
    if constexpr (variant == RowVariant::prefetch && mode != Mode::unpack) {
#pragma GCC unroll 4
      for (int64_t i = 0; i < 4; ++i) __builtin_prefetch(f + (ahead_blocks + i) * from_step);
    }
    if constexpr (variant == RowVariant::prefetch && mode != Mode::pack) {
#pragma GCC unroll 4
      for (int64_t i = 0; i < 4; ++i) __builtin_prefetch(t + (ahead_blocks + i) * to_step, 1);
    }
    block(t, f);
    block(t + to_step, f + from_step);
    block(t + 2 * to_step, f + 2 * from_step);
    block(t + 3 * to_step, f + 3 * from_step);
    t += 4 * to_step;
    f += 4 * from_step;
    if constexpr (variant == RowVariant::drain) {
      if (remaining % stores_in_buffer < 4) drain_stores();
    }
  }
  for (; remaining > 0; --remaining) {
    block(t, f);
    advance(t, to_step);
    advance(f, from_step);
  }
}

// Copies rows; strides and prefetching are decided once for all rows of a grid.
template <class Block, Mode mode>
struct RowCopier {
  Block block;
  int64_t size;
  int64_t to_step;
  int64_t from_step;
  RowVariant variant = RowVariant::plain;

  SPL_FORCE_INLINE RowCopier(int64_t bytes, int64_t to, int64_t from, int64_t blocks, int64_t rows) : block(bytes) {
    size = Block::fixed_bytes != 0 ? Block::fixed_bytes : bytes;
    to_step = mode == Mode::pack ? size : to;
    from_step = mode == Mode::unpack ? size : from;
    const int64_t step = mode == Mode::unpack ? to_step : from_step;
    const int64_t line = size < 64 ? 64 : size;
    const bool is_far = (step > far_bytes || step < -far_bytes) && blocks >= 2 * ahead_blocks;
    const int64_t crowding_stride = size < far_block_min ? four_sets_bytes : two_sets_bytes;
    if (size > far_bytes) {
      variant = RowVariant::plain;
    } else if (mode != Mode::pack && to_step % crowding_stride == 0 && blocks >= 2 * stores_in_buffer) {
      variant = RowVariant::drain;
    } else if (is_far && size >= far_block_min && (mode != Mode::pack || rows * blocks * line >= far_lines_bytes)) {
      variant = RowVariant::prefetch;
    }
  }

  SPL_FORCE_INLINE void operator()(std::byte* t, const std::byte* f, int64_t remaining) const {
    if constexpr (mode == Mode::pack && (Block::fixed_bytes == 4 || Block::fixed_bytes == 8)) {
      constexpr int64_t lanes = 32 / Block::fixed_bytes;
#if defined(__AVX512F__)
      if (from_step == 2 * size) {
        const int64_t packed_blocks = pack_every_other<Block::fixed_bytes>(t, f, remaining);
        t += packed_blocks * size;
        f += packed_blocks * from_step;
        remaining -= packed_blocks;
      }
#endif
      for (; remaining >= lanes; remaining -= lanes) {
        gather_into_vector<Block::fixed_bytes>(t, f, from_step);
        t += lanes * size;
        f += lanes * from_step;
      }
    }
    switch (variant) {
      case RowVariant::plain:
        copy_row<Block, mode, RowVariant::plain>(block, t, to_step, f, from_step, remaining);
        break;
      case RowVariant::prefetch:
        copy_row<Block, mode, RowVariant::prefetch>(block, t, to_step, f, from_step, remaining);
        break;
      case RowVariant::drain:
        if constexpr (mode != Mode::pack)
          copy_row<Block, mode, RowVariant::drain>(block, t, to_step, f, from_step, remaining);
        break;
    }
  }
};

template <class Block, Mode mode>
void copy_rows(std::byte* to, const std::byte* from, const Grid& grid) {
  const RowCopier<Block, mode> row(grid.block, grid.to.block_stride, grid.from.block_stride, grid.blocks, grid.rows);
  for (int64_t i = 0; i < grid.rows; ++i)
    row(to + i * grid.to.row_stride, from + i * grid.from.row_stride, grid.blocks);
}

template <class Block, Mode mode>
void copy_one_row(std::byte* to, const std::byte* from, int64_t blocks, int64_t bytes, int64_t to_step,
                  int64_t from_step) {
  const RowCopier<Block, mode> row(bytes, to_step, from_step, blocks, 1);
  row(to, from, blocks);
}

// Lean kernels: one loop for all modes of a class, which neither prefetches nor empties the store buffer.
template <class Block>
[[gnu::noinline]] void copy_lean(std::byte* to, const std::byte* from, int64_t blocks, int64_t bytes, int64_t to_step,
                                 int64_t from_step) {
  copy_row<Block, Mode::copy, RowVariant::plain>(Block(bytes), to, to_step, from, from_step, blocks);
}

template <class Block, Mode mode>
void copy_lean_row(std::byte* to, const std::byte* from, int64_t blocks, int64_t bytes, int64_t to_step,
                   int64_t from_step) {
  copy_lean<Block>(to, from, blocks, bytes, mode == Mode::pack ? bytes : to_step,
                   mode == Mode::unpack ? bytes : from_step);
}

template <class Block, Mode mode>
void copy_lean_rows(std::byte* to, const std::byte* from, const Grid& grid) {
  for (int64_t i = 0; i < grid.rows; ++i) {
    copy_lean_row<Block, mode>(to + i * grid.to.row_stride, from + i * grid.from.row_stride, grid.blocks, grid.block,
                               grid.to.block_stride, grid.from.block_stride);
  }
}

// Calls memcpy for each block.
void paced_row(std::byte* to, const std::byte* from, int64_t blocks, int64_t bytes, int64_t to_step,
               int64_t from_step) {
  for (int64_t i = 0; i < blocks; ++i) {
    __builtin_memcpy(to + i * to_step, from + i * from_step, static_cast<size_t>(bytes));
  }
}

// Writes a whole line past the caches.
SPL_FORCE_INLINE void stream_line(std::byte* to, const std::byte* from) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
#elif defined(__x86_64__)
#pragma GCC unroll 4
  for (int64_t at = 0; at < 64; at += 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at)));
  }
#else
  move<64>(to, from);
#endif
}

SPL_FORCE_INLINE void stream_fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

#if defined(__x86_64__)
// Returns the packed bytes [16 * number, 16 * number + 16) of blocks that lie `step` apart.
template <int64_t size>
SPL_FORCE_INLINE __m128i load_16_packed(const std::byte* from, int64_t step, int64_t number) {
  if constexpr (size >= 16) {
    constexpr int64_t per_block = size / 16;
    return _mm_loadu_si128(
        reinterpret_cast<const __m128i*>(from + number / per_block * step + number % per_block * 16));
  } else if constexpr (size == 8) {
    int64_t lane[2];
    for (int64_t i = 0; i < 2; ++i) __builtin_memcpy(&lane[i], from + (2 * number + i) * step, 8);
    return _mm_set_epi64x(lane[1], lane[0]);
  } else {
    int32_t lane[4];
    for (int64_t i = 0; i < 4; ++i) __builtin_memcpy(&lane[i], from + (4 * number + i) * step, 4);
    return _mm_set_epi32(lane[3], lane[2], lane[1], lane[0]);
  }
}
#endif

// Packs blocks, on x86-64 into whole lines that are written past the caches. `to` is a multiple of `size`.
template <int64_t size>
void stream_dense(std::byte* to, const std::byte* from, int64_t step, int64_t blocks) {
#if defined(__x86_64__)
  constexpr int64_t per_line = 64 / size;
  for (; blocks > 0 && (reinterpret_cast<uintptr_t>(to) & 63) != 0; --blocks) {
    move<size>(to, from);
    to += size;
    advance(from, step);
  }
  for (; blocks >= per_line; blocks -= per_line) {
    const __m128i a = load_16_packed<size>(from, step, 0);
    const __m128i b = load_16_packed<size>(from, step, 1);
    const __m128i c = load_16_packed<size>(from, step, 2);
    const __m128i d = load_16_packed<size>(from, step, 3);
#if defined(__AVX512F__)
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(c), d, 1);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to),
                        _mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(low), high, 1));
#else
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), a);
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + 16), b);
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + 32), c);
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + 48), d);
#endif
    to += 64;
    from += per_line * step;
  }
#endif
  for (; blocks > 0; --blocks) {
    move<size>(to, from);
    to += size;
    advance(from, step);
  }
}

// Copies one row of blocks that fill at least a line each. Lines that a block fills only in part go through the caches.
void stream_lines(std::byte* to, int64_t to_step, const std::byte* from, int64_t from_step, int64_t blocks,
                  int64_t block) {
  for (int64_t i = 0; i < blocks; ++i) {
    int64_t at = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) & 63);
    if (at > 0) copy_piece(to, from, at);
    for (; at + 64 <= block; at += 64) stream_line(to + at, from + at);
    if (at < block) copy_piece(to + at, from + at, block - at);
    advance(to, to_step);
    advance(from, from_step);
  }
}

// Copies a grid of long blocks past the caches. Prefetches across the gaps between blocks, which the core's own
// prefetcher does not do.
void stream_far_lines(std::byte* to, const std::byte* from, const Grid& grid) {
  constexpr int64_t ahead = 1024;
  const int64_t blocks_ahead = grid.block < ahead ? ahead / grid.block : 1;
  const int64_t bytes_ahead = grid.block < ahead ? 0 : ahead;
  for (int64_t row = 0; row < grid.rows; ++row) {
    for (int64_t i = 0; i < grid.blocks; ++i) {
      std::byte* const t = to + row * grid.to.row_stride + i * grid.to.block_stride;
      const std::byte* const f = from + row * grid.from.row_stride + i * grid.from.block_stride;
      const std::byte* const next_source = f + blocks_ahead * grid.from.block_stride - grid.block + bytes_ahead;
      int64_t at = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(t) & 63);
      copy_piece(t, f, at);
      for (; at + 64 <= grid.block; at += 64) {
        const bool here = bytes_ahead != 0 && at + bytes_ahead < grid.block;
        __builtin_prefetch(here ? f + at + bytes_ahead : next_source + (bytes_ahead != 0 ? at : at + grid.block));
        stream_line(t + at, f + at);
      }
      copy_piece(t + at, f + at, grid.block - at);
    }
  }
}

void stream_rows(std::byte* to, const std::byte* from, const Grid& grid) {
  if (grid.block >= stream_block_min) {
    stream_far_lines(to, from, grid);
  } else {
    for (int64_t i = 0; i < grid.rows; ++i) {
      std::byte* const t = to + i * grid.to.row_stride;
      const std::byte* const f = from + i * grid.from.row_stride;
      switch (grid.block) {
        case 4: stream_dense<4>(t, f, grid.from.block_stride, grid.blocks); break;
        case 8: stream_dense<8>(t, f, grid.from.block_stride, grid.blocks); break;
        case 16: stream_dense<16>(t, f, grid.from.block_stride, grid.blocks); break;
        case 32: stream_dense<32>(t, f, grid.from.block_stride, grid.blocks); break;
        default: stream_lines(t, grid.to.block_stride, f, grid.from.block_stride, grid.blocks, grid.block);
      }
    }
  }
  stream_fence();
}

}  // namespace
}  // namespace spinloom::layout
