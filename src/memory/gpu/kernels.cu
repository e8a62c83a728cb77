// The kernels: entries over kernel_bodies.h and kernel_brief.h. One part, which comes with the launch, or many.
#ifndef __CUDACC_RTC__
#include "memory/gpu/kernel_bodies.h"
#include "memory/gpu/kernel_brief.h"
#endif

using namespace spinloom::gpu::kernel;

template <u32 kind, class AllEnds>
__device__ __forceinline__ void entry(const Arguments& arguments, const AllEnds& all, const Part& part) {
  __shared__ __align__(16) u8 shared[kind == kind_tile || kind == kinds ? shared_bytes : 16];
  const Ends ends = all.ends[sizeof(AllEnds) == sizeof(OneEnds) ? 0 : part.ends_index];
  run<kind>(arguments, part, ends, blockIdx.x, threadIdx.x, 2, shared);
}

// Reads the part of this block of threads in one go, because reading its fields one by one would wait for each.
template <u32 kind, class AllEnds>
__device__ __forceinline__ void entry_of_many(const Arguments& arguments, const AllEnds& all) {
  __shared__ __align__(16) Part part;
  static_assert(sizeof(Part) % 8 == 0 && sizeof(Part) / 8 <= threads);
  const u64* const words = reinterpret_cast<const u64*>(&part_of(arguments, blockIdx.x));
  if (threadIdx.x < sizeof(Part) / 8) reinterpret_cast<u64*>(&part)[threadIdx.x] = words[threadIdx.x];
  __syncthreads();
  entry<kind>(arguments, all, part);
}

// One part, which comes with the launch.
#define SPL_ENTRY(name, kind)                                                                       \
  extern "C" __global__ void __launch_bounds__(threads, 3)                                          \
      spinloom_##name(const __grid_constant__ Arguments arguments, const __grid_constant__ OneEnds ends, \
                      const __grid_constant__ Part part) {                                          \
    entry<kind>(arguments, ends, part);                                                             \
  }
// Many parts, which lie in the arena.
#define SPL_ENTRY_OF_MANY(name, kind, Type)                                                         \
  extern "C" __global__ void __launch_bounds__(threads, 3)                                          \
      spinloom_##name(const __grid_constant__ Arguments arguments, const __grid_constant__ Type ends) { \
    entry_of_many<kind>(arguments, ends);                                                           \
  }

// NVRTC compiles one entry at a time: SPINLOOM_ONLY is its place in the list.
#if !defined(SPINLOOM_ONLY) || SPINLOOM_ONLY == 0
SPL_ENTRY(word, kind_word)
#endif
#if !defined(SPINLOOM_ONLY) || SPINLOOM_ONLY == 1
SPL_ENTRY(warp, kind_warp)
#endif
#if !defined(SPINLOOM_ONLY) || SPINLOOM_ONLY == 2
SPL_ENTRY(tile, kind_tile)
#endif
#if !defined(SPINLOOM_ONLY) || SPINLOOM_ONLY == 3
SPL_ENTRY(pieces, kind_pieces)
#endif
#if !defined(SPINLOOM_ONLY) || SPINLOOM_ONLY == 4
SPL_ENTRY(walk, kind_walk)
#endif
#if !defined(SPINLOOM_ONLY) || SPINLOOM_ONLY == 5
SPL_ENTRY_OF_MANY(set, kinds, OneEnds)
#endif
#if !defined(SPINLOOM_ONLY) || SPINLOOM_ONLY == 6
SPL_ENTRY_OF_MANY(set_many, kinds, ManyEnds)
#endif
#if !defined(SPINLOOM_ONLY) || SPINLOOM_ONLY == 7
SPL_ENTRY_OF_MANY(words, kind_word, OneEnds)
#endif
#if !defined(SPINLOOM_ONLY) || SPINLOOM_ONLY == 8
extern "C" __global__ void __launch_bounds__(threads, 8)
    spinloom_brief(const __grid_constant__ Arguments arguments, const __grid_constant__ OneEnds ends,
                   const __grid_constant__ Brief brief) {
  run_brief(brief, arguments.arena, ends.ends[0], blockIdx.x, threadIdx.x);
}
#endif
