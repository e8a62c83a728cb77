// The kernel set that every CPU of the target runs: SSE2 on x86-64, NEON on AArch64.
#include "memory/layout/kernel_loops.hpp"
#include "memory/layout/kernel_sets.hpp"

namespace spinloom::layout {

const KernelSet* portable_kernels() {
  static constexpr KernelSet set = set_of("portable");
  return &set;
}

}  // namespace spinloom::layout
