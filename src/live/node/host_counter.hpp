// Host counter - the cycle counter of the processor, where programs can read it.
//
// Contract: host_cycles() counts at a constant rate, the same on all cores of a machine. Only differences are
//   meaningful.
// Threads: any. Time: real; how long a tick is depends on the machine.
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
