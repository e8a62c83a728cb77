// Futex - threads of several processes sleep on a word of shared memory until somebody wakes them.
//
// Contract: futex_wait() sleeps while the word has the value `value`, at most until the deadline. futex_wake() wakes
//   sleepers that have a bit in common with `bits`. Both are system calls of Linux and work between processes.
// Invariants: (1) futex_wait() may return for no reason, so callers check again what they wait for.
// Threads: any. Time: the monotonic clock.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

#include "base/units.hpp"

namespace spinloom::live {

// The second of the monotonic clock at which this process's time begins: the one before its first call. Time counts
// picoseconds in 64 bits, which is only 106 days, and machines run for longer than that.
[[nodiscard]] inline int64_t seconds_before_us() {
  static const int64_t begin = [] {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} - 1;
  }();
  return begin;
}

// The time since seconds_before_us(). It is never 0: at the first call one to two seconds have passed.
[[nodiscard]] inline Time monotonic_now() {
  const int64_t before = seconds_before_us();
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return Time{((int64_t{now.tv_sec} - before) * 1'000'000'000 + now.tv_nsec) * 1000};
}

inline void futex_wait(std::atomic<uint32_t>& word, uint32_t value, uint32_t bits, Time deadline) {
  timespec until{};
  until.tv_sec = seconds_before_us() + deadline.ps / 1'000'000'000'000;
  until.tv_nsec = deadline.ps / 1000 % 1'000'000'000;
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, value, deadline == Time::never() ? nullptr : &until, nullptr, bits);
}

inline void futex_wake(std::atomic<uint32_t>& word, uint32_t bits, int count = INT_MAX) {
  syscall(SYS_futex, &word, FUTEX_WAKE_BITSET, count, nullptr, nullptr, bits);
}

// Tells the processor that this loop waits for another processor.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace spinloom::live
