// Kernel text - the kernels as they were built in: source, and a fatbin where nvcc was found. For the floor only.
//
// Contract: kernel_text() is kernel_parts.h, kernel_bodies.h and kernels.cu behind each other, ready for NVRTC.
//   kernel_fatbin() is null in a build without nvcc. compile_kernels() gives the image for a compute capability (90 for
//   9.0) and the compiler's version.
// Threads: any. Time: host time.
#pragma once

#include <string>

#include "base/result.hpp"

namespace spinloom::gpu {

const char* kernel_text();
const void* kernel_fatbin();
Result<std::string> compile_kernels(int compute, std::string* version);

}  // namespace spinloom::gpu
