// Kernel words - a thread a word: kernels word, pieces and walk.
//
// Contract: each thread moves words of one width, a batch at a time: all are read before the first is written. Kernel
//   walk has batches of one word. Consecutive threads take consecutive packed words.
// Invariants: (1) a word is read and written at a multiple of its width; (2) one thread moves it.
// Threads: of a device, or turns of a loop. Time: none.
#ifndef SPINLOOM_GPU_KERNEL_WORDS_H
#define SPINLOOM_GPU_KERNEL_WORDS_H

#ifndef __CUDACC_RTC__
#include "memory/gpu/kernel_places.h"
#endif

namespace spinloom::gpu::kernel {

struct Tile {
  u32 first;  // packed bytes [first, last) of the part
  u32 last;
};
SPL_GPU Tile tile_of(const Part& part, u32 tile) {
  const u32 first = tile * part.tile_bytes;
  return {first, first + lesser(part.tile_bytes, part.bytes - first)};
}

template <u32 width, int form, bool in_pieces, bool streaming = false>
SPL_GPU void move_words(const Part& part, const u8* arena, const Ends& ends, u32 tile_index, u32 thread) {
  constexpr int batch = width < 8 && form != 0 ? 8 : 4;
  const Tile tile = tile_of(part, tile_index);
  for (u32 first = tile.first + thread * width; first < tile.last; first += batch * threads * width) {
    u32 at[batch];
    i64 from[batch];
    i64 to[batch];
    Word<width> words[batch];
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) at[k] = lesser(first + static_cast<u32>(k) * threads * width, tile.last - width);
    places_of<form, in_pieces>(part, arena, at, from, to);
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      const u32 here = first + static_cast<u32>(k) * threads * width;
      if (here < tile.last) words[k] = word_at<width>(ends.from + (form == 1 ? part.from + here : from[k]));
    }
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      const u32 here = first + static_cast<u32>(k) * threads * width;
      if (here < tile.last) put<width, streaming>(ends.to + (form == 2 ? part.to + here : to[k]), words[k]);
    }
  }
}

// Moves a part with a short table of pieces. A thread takes steps of whole periods, so that it stays in its piece and
// finds it once. The last threads, for which there is no whole period, idle.
template <u32 width>
SPL_GPU void move_periods(const Part& part, const u8* arena, const Ends& ends, u32 tile_index, u32 thread) {
  constexpr int batch = 4;
  const u32 period_bytes = divide(threads * width, part.block) * part.block.divisor;
  const Tile tile = tile_of(part, tile_index);
  u32 first = tile.first + thread * width;
  if (thread * width >= period_bytes || first >= tile.last) return;
  const u32 within = first - divide(first, part.block) * part.block.divisor;
  const u32 piece = piece_of(part, arena, within);
  const i64 start = pointer_at<u32>(arena, part.starts)[piece];
  const u8* source = ends.from;
  u8* target = ends.to;
  if (part.from_offsets != 0) source += entry_of(arena, part.from_offsets, part.wide_offsets, piece) - start;
  if (part.to_offsets != 0) target += entry_of(arena, part.to_offsets, part.wide_offsets, piece) - start;
  for (; first < tile.last; first += batch * period_bytes) {
    u32 at[batch];
    i64 from[batch];
    i64 to[batch];
    Word<width> words[batch];
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      const u32 here = first + static_cast<u32>(k) * period_bytes;
      at[k] = here < tile.last ? here : first;
    }
    places_of<0, false>(part, arena, at, from, to);
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      if (first + static_cast<u32>(k) * period_bytes < tile.last) words[k] = word_at<width>(source + from[k]);
    }
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      if (first + static_cast<u32>(k) * period_bytes < tile.last) word_at<width>(target + to[k]) = words[k];
    }
  }
}

template <u32 width>
SPL_GPU void walk_words(const Part& part, const u8* arena, const Ends& ends, u32 tile_index, u32 thread) {
  const Tile tile = tile_of(part, tile_index);
  for (u32 at = tile.first + thread * width; at < tile.last; at += threads * width) {
    const i64 from = part.from + walked_place(part.from_walk, arena, part.first + at);
    const i64 to = part.to + walked_place(part.to_walk, arena, part.first + at);
    word_at<width>(ends.to + to) = word_at<width>(ends.from + from);
  }
}

}  // namespace spinloom::gpu::kernel

#endif
