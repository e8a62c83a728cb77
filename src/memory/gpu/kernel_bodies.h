// Kernel bodies - what one thread does of one tile of a part.
//
// Contract: run<kind>(arguments, part, ends, tile, thread, phase, shared) is what one thread does of one tile. One
//   source: CUDA and NVRTC compile it for devices, C++ for the host (shim.hpp), where threads are turns of a loop. A
//   device runs both sides of a barrier in one call, with phase 2. A host calls what stands before the barrier with
//   phase 0 for all threads, and then what stands behind it with phase 1; only `tile` has a barrier. Consecutive
//   threads take consecutive packed bytes; kernels differ in how they find their place.
// Invariants: (1) a word is read and written at a multiple of its width; (2) every packed byte of the part is moved by
//   one thread; (3) a thread reads and writes bytes of the message only.
// Threads: of a device. Time: none.
#ifndef SPINLOOM_GPU_KERNEL_BODIES_H
#define SPINLOOM_GPU_KERNEL_BODIES_H

#ifndef __CUDACC_RTC__
#include "memory/gpu/kernel_tiles.h"
#include "memory/gpu/kernel_warps.h"
#endif

namespace spinloom::gpu::kernel {

// `lean`: there is only one body a width for words, because a kernel of all kinds is long.
template <u32 kind, u32 width, bool lean>
SPL_GPU void run_width(const Part& part, const u8* arena, const Ends& ends, u32 tile, u32 thread, u32 phase,
                       u8* shared) {
  if constexpr (kind == kind_word) {
    if (!lean && part.dense == 1 && part.streaming != 0) {
      move_words<width, 1, false, true>(part, arena, ends, tile, thread);
    } else if (!lean && part.dense == 1) {
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
    const TileBounds bounds = bounds_of(part, arena, tile);
    const bool one_word = part.block.divisor == width;
    if (phase != 1) {
      if (one_word) {
        load_tile<width, true>(part, bounds, ends.from, thread, shared);
      } else {
        load_tile<width, false>(part, bounds, ends.from, thread, shared);
      }
    }
    if (phase == 2) SPL_BARRIER();
    if (phase != 0) {
      if (one_word) {
        store_tile<width, true>(part, bounds, ends.to, thread, shared);
      } else {
        store_tile<width, false>(part, bounds, ends.to, thread, shared);
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
  const u32 index = arguments.tile_parts == 0 ? 0 : pointer_at<u32>(arguments.arena, arguments.tile_parts)[tile];
  return pointer_at<Part>(arguments.arena, parts_place)[index];
}

// `kind` is the kind of all parts, or `kinds` where parts differ.
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
