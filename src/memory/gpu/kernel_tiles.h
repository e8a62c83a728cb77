// Kernel tiles - two levels through shared memory, for sides that run through memory in different orders.
//
// Contract: tile_in() reads columns as they lie on the one side, tile_out() writes rows as they lie on the other; a
//   barrier must lie between.
// Invariants: (1) lines of a tile lie an odd number of words apart: columns of it fall into different banks.
// Threads: of a device, or turns of a loop. Time: none.
#ifndef SPINLOOM_GPU_KERNEL_TILES_H
#define SPINLOOM_GPU_KERNEL_TILES_H

#ifndef __CUDACC_RTC__
#include "memory/gpu/kernel_places.h"
#endif

namespace spinloom::gpu::kernel {

// A tile's place: its corner, and how many of its columns and rows there are.
struct Corner {
  i64 from;
  i64 to;
  u32 columns;
  u32 rows;
};

SPL_GPU Corner corner_of(const Part& part, const u8* arena, u32 tile) {
  u32 rest = divide(tile, part.column_tiles);
  const u32 column = (tile - rest * part.column_tiles.divisor) * part.columns;
  const u32 lines = rest;
  rest = divide(lines, part.row_tiles);
  const u32 row = (lines - rest * part.row_tiles.divisor) * part.rows;
  const Level& columns = part.level[part.column_level];
  const Level& rows = part.level[part.row_level];
  Corner corner{part.from + static_cast<i64>(column) * columns.from.stride + static_cast<i64>(row) * rows.from.stride,
                part.to + static_cast<i64>(column) * columns.to.stride + static_cast<i64>(row) * rows.to.stride,
                less(part.columns, columns.count.divisor - column), less(part.rows, rows.count.divisor - row)};
  for (u32 l = 0; l < part.levels; ++l) {
    if (l == part.column_level || l == part.row_level) continue;
    const Level& level = part.level[l];
    const u32 up = divide(rest, level.count);
    const u32 digit = rest - up * level.count.divisor;
    rest = up;
    corner.from += level.from.table != 0 ? entry_of(arena, level.from.table, level.wide_from, digit)
                                         : static_cast<i64>(digit) * level.from.stride;
    corner.to += level.to.table != 0 ? entry_of(arena, level.to.table, level.wide_to, digit)
                                     : static_cast<i64>(digit) * level.to.stride;
  }
  return corner;
}

// A thread's way through the lines of a tile: a step is threads * width bytes, lines are `line` bytes long.
struct TilePosition {
  u32 line;
  u32 along;
  u32 lines;  // of a step
  u32 rest;
};
SPL_GPU TilePosition tile_position_of(const Quotient& line, u32 at, u32 step) {
  const u32 first = divide(at, line);
  const u32 lines = divide(step, line);
  return {first, at - first * line.divisor, lines, step - lines * line.divisor};
}
SPL_GPU void step(TilePosition& way, u32 length) {
  way.line += way.lines;
  way.along += way.rest;
  if (way.along >= length) {
    way.along -= length;
    ++way.line;
  }
}

SPL_GPU i64 times(u32 count, i64 stride) {  // tiles have strides below 2^31 only
  return static_cast<i64>(static_cast<i32>(count)) * static_cast<i32>(stride);
}

// Returns the number of words that a thread reads before it stores the first, so that it need not wait for each.
template <u32 width>
SPL_GPU constexpr int batch_of() {
  return width == 16 ? 4 : 8;
}

// `whole`: a block is one word.
template <u32 width, bool whole>
SPL_GPU void tile_in(const Part& part, const Corner& corner, const u8* from, u32 thread, u8* shared) {
  constexpr int batch = batch_of<width>();
  const Quotient block = part.block;
  const u32 length = part.column_bytes.divisor;
  const u32 pitch = part.pitch;
  const i64 column_stride = part.level[part.column_level].from.stride;
  const i64 row_stride = part.level[part.row_level].from.stride;
  const u8* const source = from + corner.from;
  TilePosition way = tile_position_of(part.column_bytes, thread * width, threads * width);
  while (way.line < corner.rows) {
    Word<width> words[batch];
    u32 places[batch];
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      const u32 column = whole ? way.along / width : divide(way.along, block);
      const u32 within = whole ? 0 : way.along - column * block.divisor;
      const bool inside = way.line < corner.rows && column < corner.columns;
      places[k] = inside ? way.line * pitch + way.along : shared_bytes;
      if (inside) {
        words[k] = word_at<width>(source + times(column, column_stride) + times(way.line, row_stride) + within);
      }
      step(way, length);
    }
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      if (places[k] < shared_bytes) word_at<width>(shared + places[k]) = words[k];
    }
  }
}

template <u32 width, bool whole>
SPL_GPU void tile_out(const Part& part, const Corner& corner, u8* to, u32 thread, const u8* shared) {
  constexpr int batch = 4;
  const Quotient block = part.block;
  const u32 length = part.row_bytes.divisor;
  const u32 pitch = part.pitch;
  const i64 column_stride = part.level[part.column_level].to.stride;
  const i64 row_stride = part.level[part.row_level].to.stride;
  u8* const target = to + corner.to;
  TilePosition way = tile_position_of(part.row_bytes, thread * width, threads * width);
  while (way.line < corner.columns) {
    Word<width> words[batch];
    u8* places[batch];
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      const u32 row = whole ? way.along / width : divide(way.along, block);
      const u32 within = whole ? 0 : way.along - row * block.divisor;
      const bool inside = way.line < corner.columns && row < corner.rows;
      places[k] = inside ? target + times(way.line, column_stride) + times(row, row_stride) + within : nullptr;
      if (inside) words[k] = word_at<width>(shared + row * pitch + way.line * block.divisor + within);
      step(way, length);
    }
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      if (places[k] != nullptr) word_at<width>(places[k]) = words[k];
    }
  }
}

}  // namespace spinloom::gpu::kernel

#endif
