// Kernel brief - short messages: a word a thread, everything that it needs in the kernel's parameters.
//
// Contract: run_brief(brief, arena, ends, block, thread): what one thread does of one block of threads. A short message
//   takes as long as what comes before its first read: so a Brief holds one part with strides of 32 bits, lies in the
//   constant bank, and all widths share the code that finds a place. Which parts fit one: program_brief.hpp.
// Invariants: (1) a word is read and written at a multiple of its width; (2) one thread moves it; (3) a block of
//   threads moves threads * width packed bytes, in more turns where addresses allow only narrower words.
// Threads: of a device, or turns of a loop. Time: none.
#ifndef SPINLOOM_GPU_KERNEL_BRIEF_H
#define SPINLOOM_GPU_KERNEL_BRIEF_H

#ifndef __CUDACC_RTC__
#include "memory/gpu/kernel_places.h"
#endif

namespace spinloom::gpu::kernel {

SPL_GPU i64 brief_place(const u8* arena, u32 table, i32 stride, u32 digit) {
  return table != 0 ? static_cast<i64>(pointer_at<i32>(arena, table)[digit])
                    : static_cast<i64>(static_cast<i32>(digit)) * stride;
}

SPL_GPU void run_brief(const Brief& brief, const u8* arena, const Ends& ends, u32 block, u32 thread) {
  const u32 width = width_of(brief, ends);
  const u32 first = block * (threads * brief.width);
  const u32 last = lesser(first + threads * brief.width, brief.bytes);
  for (u32 at = first + thread * width; at < last; at += threads * width) {
    u32 rest = divide(at, brief.block);
    const u32 within = at - rest * brief.block.divisor;
    const u8* source = ends.from + brief.from + within;
    u8* target = ends.to + brief.to + within;
    SPL_UNROLL  // unrolled, so that each level's fields are operands of instructions
        for (u32 l = 0; l < levels_max; ++l) {
      if (l >= brief.levels) break;
      const BriefLevel& level = brief.level[l];
      u32 digit = rest;
      if (l + 1 < brief.levels) {
        rest = divide(digit, level.count);
        digit -= rest * level.count.divisor;
      }
      source += brief_place(arena, level.from_table, level.from_stride, digit);
      target += brief_place(arena, level.to_table, level.to_stride, digit);
    }
    switch (width) {
      case 1: word_at<1>(target) = word_at<1>(source); break;
      case 2: word_at<2>(target) = word_at<2>(source); break;
      case 4: word_at<4>(target) = word_at<4>(source); break;
      case 8: word_at<8>(target) = word_at<8>(source); break;
      default: word_at<16>(target) = word_at<16>(source); break;
    }
  }
}

}  // namespace spinloom::gpu::kernel

#endif
