// Doorbell - who must be woken when something was put into a process's channels. It lies in shared memory.
//
// Contract: peers call ring() after every cell they publish; `fence` where they or the process cannot take part in
//   remote fences. The process itself says who looks after its channels:
//   drive() when a thread polls them, leave() when none does and the helper thread sleeps, doze() when all callers
//   that wait go to sleep. rings() counts; sleep() returns when it has changed.
// Invariants: (1) while somebody polls, ring() is a load; (2) after leave() or doze() the caller looks at
//   its channels once more: what was published before that is seen there, what comes later rings; (3) a peer that
//   writes anything here can keep the process awake or let it sleep, no more.
// Threads: any, of several processes. Time: none.
#pragma once

#include <atomic>
#include <cstdint>

#include "live/futex.hpp"
#include "live/remote_fence.hpp"

namespace spinloom::live {

class Doorbell {
 public:
  enum Sleeper : uint32_t { nobody = 0, helper = 1, callers = 2 };

  void ring(bool fence) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (fence) std::atomic_thread_fence(std::memory_order_seq_cst);
    if ((word_.load(std::memory_order_relaxed) & mode_bits) != nobody) wake();
  }
  void drive() {
    if ((word_.load(std::memory_order_relaxed) & mode_bits) != nobody) word_.fetch_and(~mode_bits);
  }
  void leave() { set(helper); }
  void doze() { set(callers); }
  [[nodiscard]] bool helper_listens() const { return (word_.load(std::memory_order_relaxed) & helper) != 0; }
  [[nodiscard]] bool callers_sleep() const { return (word_.load(std::memory_order_relaxed) & callers) != 0; }
  [[nodiscard]] bool somebody_polls() const { return (word_.load(std::memory_order_relaxed) & mode_bits) == nobody; }
  [[nodiscard]] uint32_t value() const { return word_.load(); }
  [[nodiscard]] static uint32_t rings(uint32_t value) { return value / one_ring; }
  void sleep(uint32_t value, Sleeper who, Time deadline) { futex_wait(word_, value, who, deadline); }
  // Whoever sleeps looks again.
  void wake() {
    uint32_t seen = word_.load(std::memory_order_relaxed);
    while (!word_.compare_exchange_weak(seen, (seen & ~mode_bits) + one_ring)) {
    }
    if ((seen & mode_bits) != nobody) futex_wake(word_, seen & mode_bits);
  }
  // The process's own: callers that sleep look again, whoever the bell is set to.
  void wake_callers() {
    word_.fetch_add(one_ring);
    futex_wake(word_, callers);
  }
  // Also those that say they do not sleep.
  void wake_all() {
    word_.fetch_add(one_ring);
    futex_wake(word_, helper | callers);
  }

 private:
  static constexpr uint32_t mode_bits = 3;
  static constexpr uint32_t one_ring = 4;

  void set(Sleeper who) {
    uint32_t seen = word_.load(std::memory_order_relaxed);
    while (!word_.compare_exchange_weak(seen, (seen & ~mode_bits) | who)) {
    }
    remote_fence();
  }

  std::atomic<uint32_t> word_{0};
};

}  // namespace spinloom::live
