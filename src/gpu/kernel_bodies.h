// Kernel bodies - what one thread does of one tile of a part.
//
// Contract: run<kind>(arguments, part, ends, tile, thread, phase, shared): phase 2 is all of it, on devices; on a host,
//   where a barrier is the end of a loop over threads, phase 0 and then, for `tile` alone, phase 1. One source: CUDA and NVRTC compile it for devices, C++ for the host (shim.hpp), where threads are turns of
//   a loop. Consecutive threads take consecutive packed bytes; kernels differ in how they find their place.
// Invariants: (1) a word is read and written at a multiple of its width; (2) every packed byte of the part is moved by
//   one thread; (3) a thread reads and writes bytes of the message only.
// Threads: of a device. Time: none.
#ifndef SPINLOOM_GPU_KERNEL_BODIES_H
#define SPINLOOM_GPU_KERNEL_BODIES_H

#ifndef __CUDACC_RTC__
#include "gpu/kernel_parts.h"
#endif

#ifdef __CUDACC__
#define SPL_GPU __device__ __forceinline__
#define SPL_ALIAS
#define SPL_ALIAS_16 __align__(16)
#define SPL_UNROLL _Pragma("unroll")
#define SPL_BARRIER() __syncthreads()
#else
#define SPL_GPU static inline
#define SPL_ALIAS __attribute__((may_alias))
#define SPL_ALIAS_16 __attribute__((may_alias, aligned(16)))
#define SPL_UNROLL
#define SPL_BARRIER() static_cast<void>(0)
#endif

namespace spinloom::gpu::kernel {

// ---- words ----

template <u32 width>
struct Word;
template <>
struct SPL_ALIAS Word<1> {
  u8 value;
};
template <>
struct SPL_ALIAS Word<2> {
  u16 value;
};
template <>
struct SPL_ALIAS Word<4> {
  u32 value;
};
template <>
struct SPL_ALIAS Word<8> {
  u64 value;
};
template <>
struct SPL_ALIAS_16 Word<16> {
  u32 value[4];
};

template <u32 width>
SPL_GPU const Word<width>& word_at(const u8* place) {
  return *reinterpret_cast<const Word<width>*>(place);
}
template <u32 width>
SPL_GPU Word<width>& word_at(u8* place) {
  return *reinterpret_cast<Word<width>*>(place);
}

template <class T>
SPL_GPU const T* at_place(const u8* arena, u64 place) {
  return reinterpret_cast<const T*>(arena + place);
}

SPL_GPU u32 less(u32 a, u32 b) { return a < b ? a : b; }

SPL_GPU u32 divide(u32 n, const Quotient& by) {
#ifdef __CUDA_ARCH__
  return __umulhi(n << 1, by.reciprocal) >> by.shift;
#else
  return static_cast<u32>((static_cast<u64>(n << 1) * by.reciprocal) >> 32) >> by.shift;
#endif
}

SPL_GPU u64 divide_wide(u64 n, u64 reciprocal, u32 shift) {
#ifdef __CUDA_ARCH__
  return __umul64hi(n << 1, reciprocal) >> shift;
#else
  return static_cast<u64>((static_cast<unsigned __int128>(n << 1) * reciprocal) >> 64) >> shift;
#endif
}

// ---- the places of packed bytes ----

SPL_GPU i64 entry_of(const u8* arena, u64 table, u32 wide, u32 index) {
  return wide != 0 ? at_place<i64>(arena, table)[index] : static_cast<i64>(at_place<i32>(arena, table)[index]);
}

// The piece that holds byte r of a block.
SPL_GPU u32 piece_of(const Part& part, const u8* arena, u32 r) {
  const u32* const starts = at_place<u32>(arena, part.starts);
  const u32* const hints = at_place<u32>(arena, part.hints);
  const u32 bucket = r >> part.hint_shift;
  u32 low = hints[bucket];
  u32 high = hints[bucket + 1];
  while (low < high) {
    const u32 middle = (low + high + 1) >> 1;
    if (starts[middle] <= r) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// The places of `batch` packed bytes `at` of the part. form: 0 any, 1 `from` is contiguous, 2 `to` is.
template <int form, bool in_pieces, int batch>
SPL_GPU void places_of(const Part& part, const u8* arena, const u32 (&at)[batch], i64 (&from)[batch],
                       i64 (&to)[batch]) {
  u32 rest[batch];
  SPL_UNROLL
  for (int k = 0; k < batch; ++k) {
    rest[k] = divide(at[k], part.block);
    const u32 within = at[k] - rest[k] * part.block.divisor;
    from[k] = part.from + (form == 1 ? at[k] : within);
    to[k] = part.to + (form == 2 ? at[k] : within);
    if (in_pieces) {
      const u32 piece = piece_of(part, arena, within);
      const i64 start = at_place<u32>(arena, part.starts)[piece];
      if (form != 1 && part.from_offsets != 0) {
        from[k] += entry_of(arena, part.from_offsets, part.wide_offsets, piece) - start;
      }
      if (form != 2 && part.to_offsets != 0) {
        to[k] += entry_of(arena, part.to_offsets, part.wide_offsets, piece) - start;
      }
    }
  }
  const u32 levels = part.levels;
  for (u32 l = 0; l < levels; ++l) {
    const Level& level = part.level[l];
    const Quotient count = level.count;
    const bool last = l + 1 == levels;
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      const u32 up = last ? 0 : divide(rest[k], count);
      const u32 digit = rest[k] - up * count.divisor;
      rest[k] = up;
      if (form != 1) {
        from[k] += level.from.table != 0 ? entry_of(arena, level.from.table, level.wide_from, digit)
                                         : static_cast<i64>(digit) * level.from.stride;
      }
      if (form != 2) {
        to[k] += level.to.table != 0 ? entry_of(arena, level.to.table, level.wide_to, digit)
                                     : static_cast<i64>(digit) * level.to.stride;
      }
    }
  }
}

// ---- the blob ----

// Nodes as docs/formats/layout.md lays them down; shim.cpp compares with include/spinloom/layout_walk.h.
template <class U, class S>
struct SPL_ALIAS Node {
  u32 kind, shift, child, table;
  U count, size, block, reciprocal;
  S stride;
  U reserved;
};
template <class U, class S>
struct SPL_ALIAS Run {
  S offset;
  U start;
};
template <class U, class S>
struct SPL_ALIAS Member {
  S offset;
  U start;
  U child;
};
constexpr u32 root_place = 72;

SPL_GPU u32 divide_by(u32 n, u32 reciprocal, u32 shift) { return divide(n, Quotient{0, reciprocal, shift}); }
SPL_GPU u64 divide_by(u64 n, u64 reciprocal, u32 shift) { return divide_wide(n, reciprocal, shift); }

template <class Entry, class U>
SPL_GPU U entry_before(const Entry* table, U count, U position) {
  U index = 0;
  while (count > 1) {
    const U half = count >> 1;
    if (table[index + half].start <= position) index += half;
    count -= half;
  }
  return index;
}

// Where packed byte `position` of one element lies, from the root's place.
template <class U, class S>
SPL_GPU i64 seek(const u8* blob, U position) {
  using N = Node<U, S>;
  i64 place = 0;
  const N* node = reinterpret_cast<const N*>(blob + root_place);
  for (;;) {
    const u8* const table = reinterpret_cast<const u8*>(node + 1);
    switch (node->kind) {
      case 2: {
        const Run<U, S>* const runs = reinterpret_cast<const Run<U, S>*>(table);
        const Run<U, S>& run = runs[entry_before(runs, node->count, position)];
        return place + run.offset + static_cast<i64>(position - run.start);
      }
      case 5: {
        const Member<U, S>* const members = reinterpret_cast<const Member<U, S>*>(table);
        const Member<U, S>& member = members[entry_before(members, node->count, position)];
        place += member.offset;
        position -= member.start;
        node = reinterpret_cast<const N*>(blob + member.child);
        break;
      }
      default: {
        const U index = divide_by(position, node->reciprocal, node->shift);
        position -= index * node->block;
        const bool listed = node->kind == 1 || node->kind == 4;
        place += listed ? static_cast<i64>(reinterpret_cast<const S*>(table)[index])
                        : static_cast<i64>(index) * static_cast<i64>(node->stride);
        if (node->kind < 3) return place + static_cast<i64>(position);
        node = reinterpret_cast<const N*>(blob + node->child);
      }
    }
  }
}

SPL_GPU i64 walked(const Walk& walk, const u8* arena, u64 position) {
  if (walk.blob == 0) return static_cast<i64>(position);
  const u64 element = divide_wide(position, walk.size_reciprocal, walk.size_shift);
  const u64 within = position - element * walk.size;
  const u8* const blob = arena + walk.blob;
  const i64 place = walk.narrow != 0 ? seek<u32, i32>(blob, static_cast<u32>(within)) : seek<u64, i64>(blob, within);
  return walk.origin + static_cast<i64>(element) * walk.extent + place;
}

// ---- a thread a word ----

struct Tile {
  u32 first;  // packed bytes of the part
  u32 last;
};
SPL_GPU Tile tile_of(const Part& part, u32 tile) {
  const u32 first = tile * part.tile_bytes;
  return {first, first + less(part.tile_bytes, part.bytes - first)};
}

template <u32 width, int form, bool in_pieces>
SPL_GPU void move_words(const Part& part, const u8* arena, const Ends& ends, u32 tile_index, u32 thread) {
  constexpr int batch = width < 8 && form != 0 ? 8 : 4;
  const Tile tile = tile_of(part, tile_index);
  for (u32 first = tile.first + thread * width; first < tile.last; first += batch * threads * width) {
    u32 at[batch];
    i64 from[batch];
    i64 to[batch];
    Word<width> words[batch];
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) at[k] = less(first + static_cast<u32>(k) * threads * width, tile.last - width);
    places_of<form, in_pieces>(part, arena, at, from, to);
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      const u32 here = first + static_cast<u32>(k) * threads * width;
      if (here < tile.last) words[k] = word_at<width>(ends.from + (form == 1 ? part.from + here : from[k]));
    }
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      const u32 here = first + static_cast<u32>(k) * threads * width;
      if (here < tile.last) word_at<width>(ends.to + (form == 2 ? part.to + here : to[k])) = words[k];
    }
  }
}

// A short table: steps of whole periods, so that a thread stays in its piece and finds it once. The last threads idle.
template <u32 width>
SPL_GPU void move_periods(const Part& part, const u8* arena, const Ends& ends, u32 tile_index, u32 thread) {
  constexpr int batch = 4;
  const u32 apart = divide(threads * width, part.block) * part.block.divisor;
  const Tile tile = tile_of(part, tile_index);
  u32 first = tile.first + thread * width;
  if (thread * width >= apart || first >= tile.last) return;
  const u32 within = first - divide(first, part.block) * part.block.divisor;
  const u32 piece = piece_of(part, arena, within);
  const i64 start = at_place<u32>(arena, part.starts)[piece];
  const u8* source = ends.from;
  u8* target = ends.to;
  if (part.from_offsets != 0) source += entry_of(arena, part.from_offsets, part.wide_offsets, piece) - start;
  if (part.to_offsets != 0) target += entry_of(arena, part.to_offsets, part.wide_offsets, piece) - start;
  for (; first < tile.last; first += batch * apart) {
    u32 at[batch];
    i64 from[batch];
    i64 to[batch];
    Word<width> words[batch];
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      const u32 here = first + static_cast<u32>(k) * apart;
      at[k] = here < tile.last ? here : first;
    }
    places_of<0, false>(part, arena, at, from, to);
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      if (first + static_cast<u32>(k) * apart < tile.last) words[k] = word_at<width>(source + from[k]);
    }
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      if (first + static_cast<u32>(k) * apart < tile.last) word_at<width>(target + to[k]) = words[k];
    }
  }
}

template <u32 width>
SPL_GPU void walk_words(const Part& part, const u8* arena, const Ends& ends, u32 tile_index, u32 thread) {
  const Tile tile = tile_of(part, tile_index);
  for (u32 at = tile.first + thread * width; at < tile.last; at += threads * width) {
    const i64 from = part.from + walked(part.from_walk, arena, part.first + at);
    const i64 to = part.to + walked(part.to_walk, arena, part.first + at);
    word_at<width>(ends.to + to) = word_at<width>(ends.from + from);
  }
}

// ---- a warp a block ----

template <u32 width>
SPL_GPU void lanes_move(u8* to, const u8* from, u32 bytes, u32 lane) {
  constexpr int batch = 4;
  for (u32 first = lane * width; first < bytes; first += batch * lanes * width) {
    Word<width> words[batch];
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      const u32 at = first + static_cast<u32>(k) * lanes * width;
      if (at < bytes) words[k] = word_at<width>(from + at);
    }
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      const u32 at = first + static_cast<u32>(k) * lanes * width;
      if (at < bytes) word_at<width>(to + at) = words[k];
    }
  }
}

// Words of 4 B at `to`, put together from two words at `from`, which has another alignment.
SPL_GPU void lanes_shift(u8* to, const u8* from, u32 words, u32 lane) {
  constexpr int batch = 4;
  const u32 shift = static_cast<u32>(reinterpret_cast<u64>(from) & 3);
  const u8* const aligned = from - shift;
  for (u32 first = lane; first < words; first += batch * lanes) {
    u64 both[batch];
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      const u32 at = first + static_cast<u32>(k) * lanes;
      if (at < words) {
        const u64 high = word_at<4>(aligned + 4 * at + 4).value;
        both[k] = high << 32 | word_at<4>(aligned + 4 * at).value;
      }
    }
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      const u32 at = first + static_cast<u32>(k) * lanes;
      if (at < words) word_at<4>(to + 4 * at).value = static_cast<u32>(both[k] >> (8 * shift));
    }
  }
}

// A contiguous block of any alignment, by the 32 threads of a warp.
SPL_GPU void lanes_copy(u8* to, const u8* from, u32 bytes, u32 lane) {
  const u32 apart = static_cast<u32>(reinterpret_cast<u64>(to) ^ reinterpret_cast<u64>(from)) & 15;
  const u32 together = apart == 0 ? 16 : apart & (0 - apart);  // both sides reach multiples of it at once
  const u32 width = together < 4 ? 4 : together;
  u32 head = less((0 - static_cast<u32>(reinterpret_cast<u64>(to))) & (width - 1), bytes);
  u32 body = (bytes - head) & ~(width - 1);
  if (together < 4) {
    // Words of `from` that hold its first and last bytes lie in the block, whole.
    const u32 shift = static_cast<u32>(reinterpret_cast<u64>(from + head)) & 3;
    if (head < shift) head = less(head + 4, bytes);
    const u32 words = (bytes - head + shift) / 4;
    body = words > 0 ? 4 * (words - 1) : 0;
    lanes_shift(to + head, from + head, body / 4, lane);
  } else if (together == 16) {
    lanes_move<16>(to + head, from + head, body, lane);
  } else if (together == 8) {
    lanes_move<8>(to + head, from + head, body, lane);
  } else {
    lanes_move<4>(to + head, from + head, body, lane);
  }
  lanes_move<1>(to, from, head, lane);
  lanes_move<1>(to + head + body, from + head + body, bytes - head - body, lane);
}

template <bool in_pieces>
SPL_GPU void move_blocks(const Part& part, const u8* arena, const Ends& ends, u32 tile_index, u32 thread) {
  constexpr u32 warps = threads / lanes;
  const Tile tile = tile_of(part, tile_index);
  const u32 share = (tile.last - tile.first + warps - 1) / warps;
  u32 at[1] = {tile.first + thread / lanes * share};
  const u32 end = less(tile.last, at[0] + share);
  while (at[0] < end) {
    i64 from[1];
    i64 to[1];
    places_of<0, in_pieces>(part, arena, at, from, to);
    const u32 within = at[0] - divide(at[0], part.block) * part.block.divisor;
    u32 rest = part.block.divisor - within;
    if (in_pieces) rest = at_place<u32>(arena, part.starts)[piece_of(part, arena, within) + 1] - within;
    rest = less(rest, end - at[0]);
    lanes_copy(ends.to + to[0], ends.from + from[0], rest, thread % lanes);
    at[0] += rest;
  }
}

// ---- two levels through shared memory ----

// A tile's place: its corner, and how many of its columns and rows there are.
struct Corner {
  i64 from;
  i64 to;
  u32 columns;
  u32 rows;
};

SPL_GPU Corner corner_of(const Part& part, const u8* arena, u32 tile) {
  const u32 column = tile % part.column_tiles * part.columns;
  u32 rest = tile / part.column_tiles;
  const u32 row = rest % part.row_tiles * part.rows;
  rest /= part.row_tiles;
  const Level& columns = part.level[part.column_level];
  const Level& rows = part.level[part.row_level];
  Corner corner{part.from + static_cast<i64>(column) * columns.from.stride + static_cast<i64>(row) * rows.from.stride,
                part.to + static_cast<i64>(column) * columns.to.stride + static_cast<i64>(row) * rows.to.stride,
                less(part.columns, columns.count.divisor - column), less(part.rows, rows.count.divisor - row)};
  for (u32 l = 0; l < part.levels; ++l) {
    if (l == part.column_level || l == part.row_level) continue;
    const Level& level = part.level[l];
    const u32 digit = rest % level.count.divisor;
    rest /= level.count.divisor;
    corner.from += level.from.table != 0 ? entry_of(arena, level.from.table, level.wide_from, digit)
                                         : static_cast<i64>(digit) * level.from.stride;
    corner.to += level.to.table != 0 ? entry_of(arena, level.to.table, level.wide_to, digit)
                                     : static_cast<i64>(digit) * level.to.stride;
  }
  return corner;
}

// A thread's way through the lines of a tile: a step is threads * width bytes, lines are `line` bytes long.
struct Way {
  u32 line;
  u32 along;
  u32 lines;  // of a step
  u32 rest;
};
SPL_GPU Way way_of(const Quotient& line, u32 at, u32 step) {
  const u32 first = divide(at, line);
  const u32 lines = divide(step, line);
  return {first, at - first * line.divisor, lines, step - lines * line.divisor};
}
SPL_GPU void step(Way& way, u32 length) {
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

// whole: a block is one word.
template <u32 width, bool whole>
SPL_GPU void tile_in(const Part& part, const Corner& corner, const u8* from, u32 thread, u8* shared) {
  constexpr int batch = 4;
  const Quotient block = part.block;
  const u32 length = part.column_bytes.divisor;
  const u32 pitch = part.pitch;
  const i64 column_stride = part.level[part.column_level].from.stride;
  const i64 row_stride = part.level[part.row_level].from.stride;
  const u8* const source = from + corner.from;
  Way way = way_of(part.column_bytes, thread * width, threads * width);
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
  const Quotient block = part.block;
  const u32 length = part.row_bytes.divisor;
  const u32 pitch = part.pitch;
  const i64 column_stride = part.level[part.column_level].to.stride;
  const i64 row_stride = part.level[part.row_level].to.stride;
  u8* const target = to + corner.to;
  Way way = way_of(part.row_bytes, thread * width, threads * width);
  while (way.line < corner.columns) {
    const u32 row = whole ? way.along / width : divide(way.along, block);
    const u32 within = whole ? 0 : way.along - row * block.divisor;
    if (row < corner.rows) {
      word_at<width>(target + times(way.line, column_stride) + times(row, row_stride) + within) =
          word_at<width>(shared + row * pitch + way.line * block.divisor + within);
    }
    step(way, length);
  }
}

// ---- one tile ----

// The widest word at which both sides can be read and written.
SPL_GPU u32 width_of(const Part& part, const Ends& ends) {
  const u32 low =
      static_cast<u32>(reinterpret_cast<u64>(ends.from + part.from) | reinterpret_cast<u64>(ends.to + part.to)) |
      part.width;
  return low & (0 - low);
}

// lean: one body a width for words, because a kernel of all kinds is long.
template <u32 kind, u32 width, bool lean>
SPL_GPU void run_width(const Part& part, const u8* arena, const Ends& ends, u32 tile, u32 thread, u32 phase,
                       u8* shared) {
  if constexpr (kind == kind_word) {
    if (!lean && part.dense == 1) {
      move_words<width, 1, false>(part, arena, ends, tile, thread);
    } else if (!lean && part.dense == 2) {
      move_words<width, 2, false>(part, arena, ends, tile, thread);
    } else {
      move_words<width, 0, false>(part, arena, ends, tile, thread);
    }
  } else if constexpr (kind == kind_pieces) {
    if (part.block.divisor <= threads * width / 4) {
      move_periods<width>(part, arena, ends, tile, thread);
    } else {
      move_words<width, 0, true>(part, arena, ends, tile, thread);
    }
  } else if constexpr (kind == kind_walk) {
    walk_words<width>(part, arena, ends, tile, thread);
  } else {
    const Corner corner = corner_of(part, arena, tile);
    const bool whole = part.block.divisor == width;
    if (phase != 1) {
      if (whole) {
        tile_in<width, true>(part, corner, ends.from, thread, shared);
      } else {
        tile_in<width, false>(part, corner, ends.from, thread, shared);
      }
    }
    if (phase == 2) SPL_BARRIER();
    if (phase != 0) {
      if (whole) {
        tile_out<width, true>(part, corner, ends.to, thread, shared);
      } else {
        tile_out<width, false>(part, corner, ends.to, thread, shared);
      }
    }
  }
}

template <u32 kind, bool lean>
SPL_GPU void run_part(const Part& part, const u8* arena, const Ends& ends, u32 tile, u32 thread, u32 phase,
                      u8* shared) {
  const u32 width = width_of(part, ends);
  if constexpr (kind == kind_word || kind == kind_warp || kind == kind_pieces) {
    if (kind == kind_warp || width < part.warp_below) {
      if (part.starts != 0) {
        move_blocks<true>(part, arena, ends, tile, thread);
      } else {
        move_blocks<false>(part, arena, ends, tile, thread);
      }
      return;
    }
  }
  if constexpr (kind != kind_warp) {
    switch (width) {
      case 1: run_width<kind, 1, lean>(part, arena, ends, tile, thread, phase, shared); break;
      case 2: run_width<kind, 2, lean>(part, arena, ends, tile, thread, phase, shared); break;
      case 4: run_width<kind, 4, lean>(part, arena, ends, tile, thread, phase, shared); break;
      case 8: run_width<kind, 8, lean>(part, arena, ends, tile, thread, phase, shared); break;
      default: run_width<kind, 16, lean>(part, arena, ends, tile, thread, phase, shared); break;
    }
  }
}

SPL_GPU const Part& part_of(const Arguments& arguments, u32 tile) {
  const u32 index = arguments.tile_parts == 0 ? 0 : at_place<u32>(arguments.arena, arguments.tile_parts)[tile];
  return at_place<Part>(arguments.arena, parts_place)[index];
}

// `kind` is that of all parts, or `kinds`: parts differ.
template <u32 kind>
SPL_GPU void run(const Arguments& arguments, const Part& part, const Ends& ends, u32 tile, u32 thread, u32 phase,
                 u8* shared) {
  const u32 local = tile - part.first_tile;
  const u8* const arena = arguments.arena;
  if constexpr (kind != kinds) {
    run_part<kind, false>(part, arena, ends, local, thread, phase, shared);
  } else {
    switch (part.kind) {
      case kind_word: run_part<kind_word, true>(part, arena, ends, local, thread, phase, shared); break;
      case kind_warp: run_part<kind_warp, true>(part, arena, ends, local, thread, phase, shared); break;
      case kind_tile: run_part<kind_tile, true>(part, arena, ends, local, thread, phase, shared); break;
      case kind_pieces: run_part<kind_pieces, true>(part, arena, ends, local, thread, phase, shared); break;
      default: run_part<kind_walk, true>(part, arena, ends, local, thread, phase, shared); break;
    }
  }
}

}  // namespace spinloom::gpu::kernel

#endif
