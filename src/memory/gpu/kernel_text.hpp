// Kernel text - the kernels as they were built in: source, and a fatbin where nvcc was found. For the floor only.
//
// Contract: kernel_text() is the kernel_*.h and kernels.cu behind each other, ready for NVRTC.
//   kernel_fatbin() is null in a build without nvcc. compile_text() gives the image of one entry for a
//   compute capability (90 for 9.0); compiler_version() names NVRTC.
// Threads: any. Time: host time.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.hpp"

namespace spinloom::gpu {

const char* kernel_text();
const void* kernel_fatbin();
Result<std::string> compiler_version();
Result<std::string> compile_text(int compute_capability, size_t entry);

}  // namespace spinloom::gpu
