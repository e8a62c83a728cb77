// DirectGate - how a process lets its peers reach into its memory, and how it ends that.
//
// Contract: the owner has a gate, each peer a slot; both are words of shared memory. A peer enter()s a gate by its
//   number, 1 to 255, does its work and leave()s. The owner opens the gate, or shuts it and waits until is_inside() is
//   false for every peer: then no peer is inside before the owner opens it again.
// Invariants: (1) a peer that enter() has let in is seen by every is_inside() that follows the shut() of that gate,
//   until it leaves; (2) all that a peer has written inside is seen by the owner once is_inside() is false, and what
//   the owner wrote before open() is seen by a peer that is inside; (3) a peer that dies inside leaves its slot as it
//   is: the owner clears it. `Word` has load(), which acquires, store(), which releases, and fence(), which orders
//   all; so the same code runs on shared memory and under a test that tries all orders of these steps
//   (direct_gate_test.cpp).
// Threads: one owner, one peer a slot, in different processes. Time: none.
#pragma once

#include <atomic>
#include <cstdint>

namespace spinloom::live {

class SharedWord {
 public:
  [[nodiscard]] uint64_t load() const { return value_.load(std::memory_order_acquire); }
  void store(uint64_t value) { value_.store(value, std::memory_order_release); }
  void add(uint64_t by) { value_.fetch_add(by, std::memory_order_acq_rel); }
  [[nodiscard]] uint64_t exchange(uint64_t value) { return value_.exchange(value, std::memory_order_acq_rel); }
  static void fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

 private:
  std::atomic<uint64_t> value_{0};
};

template <class Word>
class DirectGate {
 public:
  // The peer's side. Each visit gives its slot another value.
  [[nodiscard]] static bool enter(const Word& gate, Word& slot, uint64_t number) {
    const uint64_t visit = (slot.load() | numbers) + 1;
    slot.store(visit | number);
    Word::fence();  // the owner sees the slot, or this peer sees that the gate is shut
    if (gate.load() == open_value) return true;
    slot.store(visit);
    return false;
  }
  static void leave(Word& slot) { slot.store(slot.load() & ~numbers); }

  // The owner's side.
  static void open(Word& gate) { gate.store(open_value); }
  static void shut(Word& gate) {
    gate.store(shut_value);
    Word::fence();
  }
  [[nodiscard]] static bool is_inside(const Word& slot, uint64_t number) { return (slot.load() & numbers) == number; }

 private:
  static constexpr uint64_t shut_value = 0, open_value = 1;
  static constexpr uint64_t numbers = 0xff;
};

}  // namespace spinloom::live
