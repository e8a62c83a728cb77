// OwnerLock - the lock of a NIC's engine: only the thread that holds it may call the engine.
//
// Contract: lock() and unlock() work as those of any mutex. A thread that holds the lock for long calls has_waiters()
//   now and then, and lets other threads in by yield().
// Invariants: (1) a thread that waits for long sleeps; (2) yield() returns with the lock held.
// Threads: any. Time: none.
#pragma once

#include <atomic>

#include "live/node/futex.hpp"

namespace spinloom::live {

class OwnerLock {
 public:
  void lock() {
    if (!try_lock()) lock_slowly();
  }
  [[nodiscard]] bool try_lock() {
    uint32_t expected = free;
    return state_.compare_exchange_strong(expected, held, std::memory_order_acquire, std::memory_order_relaxed);
  }
  // Frees the lock by a plain store: an exchange would wait until all earlier stores are done, also those to lines in
  // peers' caches. A store may miss a thread that is about to sleep, so a sleeping thread looks again by itself after
  // a while. Sleeping threads are woken once, not by every call until they get a processor.
  void unlock() {
    state_.store(free, std::memory_order_release);
    if (has_sleepers_.load(std::memory_order_relaxed) && has_sleepers_.exchange(false)) futex_wake(state_, every_bit);
  }
  [[nodiscard]] bool has_waiters() const { return waiters_.load(std::memory_order_relaxed) > 0; }
  void yield() {
    unlock();
    for (int i = 0; i < patience && has_waiters(); ++i) relax();
    lock();
  }

 private:
  static constexpr uint32_t free = 0, held = 1;
  static constexpr Time look_again{500'000'000};  // 500 us
  static constexpr uint32_t every_bit = FUTEX_BITSET_MATCH_ANY;
  static constexpr int patience = 200;

  void lock_slowly() {
    waiters_.fetch_add(1, std::memory_order_relaxed);
    for (int i = 0; i < 2 * patience; ++i) {
      if (try_lock()) {
        waiters_.fetch_sub(1, std::memory_order_relaxed);
        return;
      }
      relax();
    }
    while (!try_lock()) {
      has_sleepers_ = true;
      futex_wait(state_, held, every_bit, monotonic_now() + look_again);
    }
    waiters_.fetch_sub(1, std::memory_order_relaxed);
  }

  std::atomic<uint32_t> state_{free};
  std::atomic<uint32_t> waiters_{0};    // threads that wait
  std::atomic<bool> has_sleepers_{false};  // one or more of the waiting threads sleep
};

}  // namespace spinloom::live
