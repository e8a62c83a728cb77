// Kernel sets - one function for each set; null where the compiler could not build the set. kernel.cpp decides
// whether the CPU runs it.
//
// Contract: a set names null for a kernel whose code does not depend on what its instruction set adds; kernel.cpp takes
//   that of the set below it. So the compiler makes such code once.
// Threads: pure. Time: none.
#pragma once

#include "memory/layout/kernel.hpp"

namespace spinloom::layout {

const KernelSet* portable_kernels();
const KernelSet* avx2_kernels();
const KernelSet* avx512_kernels();

}  // namespace spinloom::layout
