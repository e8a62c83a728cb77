// The kernel set for CPUs with the avx2 instructions; compiled with them, empty where the compiler has none.
#include "layout/kernel_sets.hpp"

#if defined(__AVX2__)
#include "layout/kernel_loops.hpp"
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
