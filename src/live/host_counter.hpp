// Host counter - the processor's own cycle counter, where it has one that programs can read.
//
// Contract: host_cycles() counts at a constant rate, the same on all cores of a machine; differences count.
// Threads: any. Time: real; what a tick is worth is the machine's affair.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#elif !defined(__aarch64__)
#include <chrono>
#endif

namespace spinloom::live {

inline uint64_t host_cycles() {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  uint64_t count = 0;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
  return count;
#else
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

}  // namespace spinloom::live
