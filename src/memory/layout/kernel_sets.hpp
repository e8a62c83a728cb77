// Kernel sets - one function for each set; null where the compiler could not build the set. kernel.cpp decides
// whether the CPU runs it.
//
// Threads: pure. Time: none.
#pragma once

#include "memory/layout/kernel.hpp"

namespace spinloom::layout {

const KernelSet* portable_kernels();
const KernelSet* avx2_kernels();
const KernelSet* avx512_kernels();

}  // namespace spinloom::layout
