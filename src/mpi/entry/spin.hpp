// Spin - how a rank waits for another one: it looks often, and after a while it yields its core between two looks.
//
// Contract: a waiting rank calls pause() between two looks. The first calls pause briefly; every later one yields.
// Threads: one. Time: none.
#pragma once

#include <sched.h>

namespace spinloom::mpi {

inline void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

class Spin {
 public:
  // Returns true if it has yielded.
  bool pause() {
    pause_briefly();
    constexpr int tries_before_yield = 2'000;
    if (++tries_ < tries_before_yield) return false;
    sched_yield();
    return true;
  }

 private:
  int tries_ = 0;
};

}  // namespace spinloom::mpi
