// Doorbell - knows which threads to wake when something comes into the channels of a process. It lies in shared memory.
//
// Contract: a peer calls ring() after it has published cells, with `fence` if one of the two processes does not take
//   part in remote fences. The process itself says who looks after its channels: note_polling() means that a thread
//   polls them, note_helper_sleeps() that no thread does and the helper thread sleeps, note_callers_sleep() that all
//   callers that wait go to sleep. rings() takes the number of calls that woke somebody out of value(). sleep() returns
//   when value() has changed, when the sleeper is woken, at the deadline, or for no reason.
// Invariants: (1) while some thread polls, ring() is a single load, behind a fence if there is `fence`; (2) after
//   note_helper_sleeps() or note_callers_sleep() the caller looks at its channels once more: it sees there what was
//   published before, and what is published later wakes the sleepers; (3) a peer that writes anything here can keep the
//   process awake or let it sleep, but do no more harm.
// Threads: any, of several processes. Time: none.
#pragma once

#include <atomic>
#include <cstdint>

#include "live/node/futex.hpp"
#include "live/node/remote_fence.hpp"

namespace spinloom::live {

class Doorbell {
 public:
  enum Sleeper : uint32_t { nobody = 0, helper = 1, callers = 2 };

  void ring(bool fence) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (fence) std::atomic_thread_fence(std::memory_order_seq_cst);
    if ((word_.load(std::memory_order_relaxed) & mode_bits) != nobody) wake();
  }
  // Rings for what only a caller that waits needs: the helper sleeps on.
  void ring_callers(bool fence) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (fence) std::atomic_thread_fence(std::memory_order_seq_cst);
    if ((word_.load(std::memory_order_relaxed) & callers) != 0) wake();
  }
  void note_polling() {
    if ((word_.load(std::memory_order_relaxed) & mode_bits) != nobody) word_.fetch_and(~mode_bits);
  }
  void note_helper_sleeps() { set(helper); }
  void note_callers_sleep() { set(callers); }
  [[nodiscard]] bool helper_sleeps() const { return (word_.load(std::memory_order_relaxed) & helper) != 0; }
  [[nodiscard]] bool callers_sleep() const { return (word_.load(std::memory_order_relaxed) & callers) != 0; }
  [[nodiscard]] bool somebody_polls() const { return (word_.load(std::memory_order_relaxed) & mode_bits) == nobody; }
  [[nodiscard]] uint32_t value() const { return word_.load(); }
  [[nodiscard]] static uint32_t rings(uint32_t value) { return value / one_ring; }
  void sleep(uint32_t value, Sleeper sleeper, Time deadline) { futex_wait(word_, value, sleeper, deadline); }
  // Wakes the helper or the callers, if note_helper_sleeps() or note_callers_sleep() has said that they sleep. The bell
  // then stands as after note_polling().
  void wake() {
    uint32_t seen = word_.load(std::memory_order_relaxed);
    while (!word_.compare_exchange_weak(seen, (seen & ~mode_bits) + one_ring)) {
    }
    if ((seen & mode_bits) != nobody) futex_wake(word_, seen & mode_bits);
  }
  // Wakes callers that sleep, whatever the bell stands at. Only the process itself calls this.
  void wake_callers() {
    word_.fetch_add(one_ring);
    futex_wake(word_, callers);
  }
  // Wakes the helper and the callers, whatever the bell stands at.
  void wake_all() {
    word_.fetch_add(one_ring);
    futex_wake(word_, helper | callers);
  }

 private:
  static constexpr uint32_t mode_bits = 3;
  static constexpr uint32_t one_ring = 4;

  void set(Sleeper sleeper) {
    uint32_t seen = word_.load(std::memory_order_relaxed);
    while (!word_.compare_exchange_weak(seen, (seen & ~mode_bits) | sleeper)) {
    }
    remote_fence();
  }

  std::atomic<uint32_t> word_{0};
};

}  // namespace spinloom::live
