// The kernel set for CPUs with AVX-512. The file is compiled for AVX-512; where the compiler lacks it, there is no set.
#include "memory/layout/kernel_sets.hpp"

#if defined(__AVX512BW__)
#include "memory/layout/kernel_loops.hpp"
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
