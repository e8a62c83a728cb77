// The kernel set for CPUs with the avx512 instructions; compiled with them, empty where the compiler has none.
#include "layout/kernel_sets.hpp"

#if defined(__AVX512BW__)
#include "layout/kernel_loops.hpp"
#endif

namespace spinloom::layout {

const KernelSet* avx512_kernels() {
#if defined(__AVX512BW__)
  static constexpr KernelSet set = set_of("avx512");
  return &set;
#else
  return nullptr;
#endif
}

}  // namespace spinloom::layout
