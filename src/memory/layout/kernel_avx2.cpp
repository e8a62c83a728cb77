// The kernel set for CPUs with AVX2. The file is compiled for AVX2; where the compiler lacks it, there is no set.
#include "memory/layout/kernel_sets.hpp"

#if defined(__AVX2__)
#include "memory/layout/kernel_loops.hpp"
#endif

namespace spinloom::layout {

const KernelSet* avx2_kernels() {
#if defined(__AVX2__)
  static constexpr KernelSet set = set_of("avx2");
  return &set;
#else
  return nullptr;
#endif
}

}  // namespace spinloom::layout
