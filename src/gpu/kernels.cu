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

SPL_ENTRY(word, kind_word, OneEnds)
SPL_ENTRY(warp, kind_warp, OneEnds)
SPL_ENTRY(tile, kind_tile, OneEnds)
SPL_ENTRY(pieces, kind_pieces, OneEnds)
SPL_ENTRY(walk, kind_walk, OneEnds)
SPL_ENTRY(set, kinds, OneEnds)
SPL_ENTRY(set_many, kinds, ManyEnds)
