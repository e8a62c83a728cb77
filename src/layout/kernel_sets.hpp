// Kernel sets - one function a set; null where the compiler could not build it. Whether the CPU runs it is
// kernel.cpp's.
//
// Threads: pure. Time: none.
#pragma once

#include "layout/kernel.hpp"

namespace spinloom::layout {

const KernelSet* portable_kernels();
const KernelSet* avx2_kernels();
const KernelSet* avx512_kernels();

}  // namespace spinloom::layout
