// Kernel tiles - two levels through shared memory, for sides that run through memory in different orders.
//
// Contract: load_tile() reads columns as they lie on the one side, store_tile() writes rows as they lie on the other; a
//   barrier must lie between.
// Invariants: (1) lines of a tile lie an odd number of words apart: columns of it fall into different banks.
// Threads: of a device, or turns of a loop. Time: none.
#ifndef SPINLOOM_GPU_KERNEL_TILES_H
#define SPINLOOM_GPU_KERNEL_TILES_H

#ifndef __CUDACC_RTC__
#include "memory/gpu/kernel_places.h"
#endif

namespace spinloom::gpu::kernel {

// A tile's place: its first byte on each side, and how many of its columns and rows there are.
struct TileBounds {
  i64 from;
  i64 to;
  u32 columns;
  u32 rows;
};

SPL_GPU TileBounds bounds_of(const Part& part, const u8* arena, u32 tile) {
  u32 rest = divide(tile, part.column_tiles);
  const u32 column = (tile - rest * part.column_tiles.divisor) * part.columns;
  const u32 lines = rest;
  rest = divide(lines, part.row_tiles);
  const u32 row = (lines - rest * part.row_tiles.divisor) * part.rows;
  const Level& columns = part.level[part.column_level];
  const Level& rows = part.level[part.row_level];
  TileBounds bounds{
      part.from + static_cast<i64>(column) * columns.from.stride + static_cast<i64>(row) * rows.from.stride,
      part.to + static_cast<i64>(column) * columns.to.stride + static_cast<i64>(row) * rows.to.stride,
      lesser(part.columns, columns.count.divisor - column), lesser(part.rows, rows.count.divisor - row)};
  for (u32 l = 0; l < part.levels; ++l) {
    if (l == part.column_level || l == part.row_level) continue;
    const Level& level = part.level[l];
    const u32 up = divide(rest, level.count);
    const u32 digit = rest - up * level.count.divisor;
    rest = up;
    bounds.from += level.from.table != 0 ? entry_of(arena, level.from.table, level.wide_from, digit)
                                         : static_cast<i64>(digit) * level.from.stride;
    bounds.to += level.to.table != 0 ? entry_of(arena, level.to.table, level.wide_to, digit)
                                     : static_cast<i64>(digit) * level.to.stride;
  }
  return bounds;
}

// A thread's position in the lines of a tile, and its step from word to word: threads * width bytes, which are some
// whole lines and the rest of one.
struct TilePosition {
  u32 line;
  u32 byte;  // place in the line
  u32 step_lines;
  u32 step_bytes;
};
SPL_GPU TilePosition tile_position_of(const FastDivisor& line, u32 at, u32 step) {
  const u32 first = divide(at, line);
  const u32 lines = divide(step, line);
  return {first, at - first * line.divisor, lines, step - lines * line.divisor};
}
SPL_GPU void advance(TilePosition& position, u32 length) {
  position.line += position.step_lines;
  position.byte += position.step_bytes;
  if (position.byte >= length) {
    position.byte -= length;
    ++position.line;
  }
}

SPL_GPU i64 offset_at(u32 count, i64 stride) {  // tiles have strides below 2^31 only
  return static_cast<i64>(static_cast<i32>(count)) * static_cast<i32>(stride);
}

// Returns the number of words that a thread reads before it stores the first, so that it need not wait for each.
template <u32 width>
SPL_GPU constexpr int batch_of() {
  return width == 16 ? 4 : 8;
}

// `one_word`: a block is one word.
template <u32 width, bool one_word>
SPL_GPU void load_tile(const Part& part, const TileBounds& bounds, const u8* from, u32 thread, u8* shared) {
  constexpr int batch = batch_of<width>();
  const FastDivisor block = part.block;
  const u32 length = part.column_bytes.divisor;
  const u32 pitch = part.pitch;
  const i64 column_stride = part.level[part.column_level].from.stride;
  const i64 row_stride = part.level[part.row_level].from.stride;
  const u8* const source = from + bounds.from;
  TilePosition position = tile_position_of(part.column_bytes, thread * width, threads * width);
  while (position.line < bounds.rows) {
    Word<width> words[batch];
    u32 places[batch];
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      const u32 column = one_word ? position.byte / width : divide(position.byte, block);
      const u32 within = one_word ? 0 : position.byte - column * block.divisor;
      const bool inside = position.line < bounds.rows && column < bounds.columns;
      places[k] = inside ? position.line * pitch + position.byte : shared_bytes;
      if (inside) {
        words[k] =
            word_at<width>(source + offset_at(column, column_stride) + offset_at(position.line, row_stride) + within);
      }
      advance(position, length);
    }
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      if (places[k] < shared_bytes) word_at<width>(shared + places[k]) = words[k];
    }
  }
}

template <u32 width, bool one_word>
SPL_GPU void store_tile(const Part& part, const TileBounds& bounds, u8* to, u32 thread, const u8* shared) {
  constexpr int batch = 4;
  const FastDivisor block = part.block;
  const u32 length = part.row_bytes.divisor;
  const u32 pitch = part.pitch;
  const i64 column_stride = part.level[part.column_level].to.stride;
  const i64 row_stride = part.level[part.row_level].to.stride;
  u8* const target = to + bounds.to;
  TilePosition position = tile_position_of(part.row_bytes, thread * width, threads * width);
  while (position.line < bounds.columns) {
    Word<width> words[batch];
    u8* places[batch];
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      const u32 row = one_word ? position.byte / width : divide(position.byte, block);
      const u32 within = one_word ? 0 : position.byte - row * block.divisor;
      const bool inside = position.line < bounds.columns && row < bounds.rows;
      places[k] =
          inside ? target + offset_at(position.line, column_stride) + offset_at(row, row_stride) + within : nullptr;
      if (inside) words[k] = word_at<width>(shared + row * pitch + position.line * block.divisor + within);
      advance(position, length);
    }
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      if (places[k] != nullptr) word_at<width>(places[k]) = words[k];
    }
  }
}

}  // namespace spinloom::gpu::kernel

#endif
