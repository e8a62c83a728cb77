// The kernels: entries over kernel_bodies.h. One pair of addresses, or many; parts of one kind, or of several.
#ifndef __CUDACC_RTC__
#include "gpu/kernel_bodies.h"
#endif

using namespace spinloom::gpu::kernel;

template <u32 kind, class AllEnds>
__device__ __forceinline__ void entry(const Arguments& arguments, const AllEnds& all) {
  __shared__ __align__(16) u8 shared[kind == kind_tile || kind == kinds ? shared_bytes : 16];
  const Part& part = part_of(arguments, blockIdx.x);
  const Ends ends = all.ends[sizeof(AllEnds) == sizeof(OneEnds) ? 0 : part.ends];
  run<kind>(arguments, part, ends, blockIdx.x, threadIdx.x, 2, shared);
}

#define SPL_ENTRY(name, kind, Type)                                               \
  extern "C" __global__ void __launch_bounds__(threads, 3)                        \
      spinloom_##name(const __grid_constant__ Arguments arguments, const __grid_constant__ Type ends) { \
    entry<kind>(arguments, ends);                                                 \
  }

// NVRTC compiles one entry at a time: SPINLOOM_ONLY is its place in the list.
#if !defined(SPINLOOM_ONLY) || SPINLOOM_ONLY == 0
SPL_ENTRY(word, kind_word, OneEnds)
#endif
#if !defined(SPINLOOM_ONLY) || SPINLOOM_ONLY == 1
SPL_ENTRY(warp, kind_warp, OneEnds)
#endif
#if !defined(SPINLOOM_ONLY) || SPINLOOM_ONLY == 2
SPL_ENTRY(tile, kind_tile, OneEnds)
#endif
#if !defined(SPINLOOM_ONLY) || SPINLOOM_ONLY == 3
SPL_ENTRY(pieces, kind_pieces, OneEnds)
#endif
#if !defined(SPINLOOM_ONLY) || SPINLOOM_ONLY == 4
SPL_ENTRY(walk, kind_walk, OneEnds)
#endif
#if !defined(SPINLOOM_ONLY) || SPINLOOM_ONLY == 5
SPL_ENTRY(set, kinds, OneEnds)
#endif
#if !defined(SPINLOOM_ONLY) || SPINLOOM_ONLY == 6
SPL_ENTRY(set_many, kinds, ManyEnds)
#endif
