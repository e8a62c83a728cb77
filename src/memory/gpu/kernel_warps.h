// Kernel warps - a warp a block: long blocks at any address.
//
// Contract: the 32 threads of a warp move a contiguous run: single bytes to where the target is aligned, then words,
//   which are put together from two where the source has another alignment, then single bytes.
// Invariants: (1) a thread reads and writes bytes of the run only.
// Threads: of a device, or turns of a loop. Time: none.
#ifndef SPINLOOM_GPU_KERNEL_WARPS_H
#define SPINLOOM_GPU_KERNEL_WARPS_H

#ifndef __CUDACC_RTC__
#include "memory/gpu/kernel_words.h"
#endif

namespace spinloom::gpu::kernel {

template <u32 width>
SPL_GPU void warp_move(u8* to, const u8* from, u32 bytes, u32 lane) {
  constexpr int batch = 4;
  for (u32 first = lane * width; first < bytes; first += batch * warp_threads * width) {
    Word<width> words[batch];
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      const u32 at = first + static_cast<u32>(k) * warp_threads * width;
      if (at < bytes) words[k] = word_at<width>(from + at);
    }
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      const u32 at = first + static_cast<u32>(k) * warp_threads * width;
      if (at < bytes) word_at<width>(to + at) = words[k];
    }
  }
}

// Writes words of 4 B at `to`, each put together from two words at `from`, which has another alignment.
SPL_GPU void warp_move_shifted(u8* to, const u8* from, u32 words, u32 lane) {
  constexpr int batch = 4;
  const u32 shift = static_cast<u32>(reinterpret_cast<u64>(from) & 3);
  const u8* const aligned = from - shift;
  for (u32 first = lane; first < words; first += batch * warp_threads) {
    u64 both[batch];
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      const u32 at = first + static_cast<u32>(k) * warp_threads;
      if (at < words) {
        const u64 high = word_at<4>(aligned + 4 * at + 4).value;
        both[k] = high << 32 | word_at<4>(aligned + 4 * at).value;
      }
    }
    SPL_UNROLL
    for (int k = 0; k < batch; ++k) {
      const u32 at = first + static_cast<u32>(k) * warp_threads;
      if (at < words) word_at<4>(to + 4 * at).value = static_cast<u32>(both[k] >> (8 * shift));
    }
  }
}

// Copies a contiguous block of any alignment by the 32 threads of a warp.
SPL_GPU void warp_copy(u8* to, const u8* from, u32 bytes, u32 lane) {
  const u32 misalignment = static_cast<u32>(reinterpret_cast<u64>(to) ^ reinterpret_cast<u64>(from)) & 15;
  // Both sides reach multiples of it at once.
  const u32 common_alignment = misalignment == 0 ? 16 : misalignment & (0 - misalignment);
  const u32 width = common_alignment < 4 ? 4 : common_alignment;
  u32 head = lesser((0 - static_cast<u32>(reinterpret_cast<u64>(to))) & (width - 1), bytes);
  u32 body = (bytes - head) & ~(width - 1);
  if (common_alignment < 4) {
    // Head and words are chosen so that every word of `from` that is read lies in the block as a whole.
    const u32 shift = static_cast<u32>(reinterpret_cast<u64>(from + head)) & 3;
    if (head < shift) head = lesser(head + 4, bytes);
    const u32 words = (bytes - head + shift) / 4;
    body = words > 0 ? 4 * (words - 1) : 0;
    warp_move_shifted(to + head, from + head, body / 4, lane);
  } else if (common_alignment == 16) {
    warp_move<16>(to + head, from + head, body, lane);
  } else if (common_alignment == 8) {
    warp_move<8>(to + head, from + head, body, lane);
  } else {
    warp_move<4>(to + head, from + head, body, lane);
  }
  warp_move<1>(to, from, head, lane);
  warp_move<1>(to + head + body, from + head + body, bytes - head - body, lane);
}

template <bool in_pieces>
SPL_GPU void move_blocks(const Part& part, const u8* arena, const Ends& ends, u32 tile_index, u32 thread) {
  constexpr u32 warps = threads / warp_threads;
  const Tile tile = tile_of(part, tile_index);
  const u32 share = (tile.last - tile.first + warps - 1) / warps;
  u32 at[1] = {tile.first + thread / warp_threads * share};
  const u32 end = lesser(tile.last, at[0] + share);
  while (at[0] < end) {
    i64 from[1];
    i64 to[1];
    places_of<0, in_pieces>(part, arena, at, from, to);
    const u32 within = at[0] - divide(at[0], part.block) * part.block.divisor;
    u32 rest = part.block.divisor - within;
    if (in_pieces) rest = pointer_at<u32>(arena, part.starts)[piece_of(part, arena, within) + 1] - within;
    rest = lesser(rest, end - at[0]);
    warp_copy(ends.to + to[0], ends.from + from[0], rest, thread % warp_threads);
    at[0] += rest;
  }
}

}  // namespace spinloom::gpu::kernel

#endif
