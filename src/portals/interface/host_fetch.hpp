// Host fetch - performs handlers' reads and atomics on host memory, and atomics on handler memory, for drivers.
//
// Contract: perform() moves the bytes that the action names, at once; the caller decides when. Atomics use the
//   processor's instructions, so that host programs may use the same words.
// Threads: any. Reads of bytes that another thread writes meanwhile are not indivisible; atomics are. Time: none.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "nic/portals/action.hpp"

namespace spinloom::portals {

template <class Word>
uint64_t perform_on(const nic::DmaAtomic& atomic) {
  std::atomic_ref<Word> word(*reinterpret_cast<Word*>(atomic.host));
  const auto operand = static_cast<Word>(atomic.operand);
  if (atomic.kind == nic::AtomicKind::fetch_add) return word.fetch_add(operand);
  auto expected = static_cast<Word>(atomic.compare);
  word.compare_exchange_strong(expected, operand);
  return expected;
}

inline nic::DmaId perform(const nic::DmaRead& read) {
  if (read.length > 0) std::memcpy(read.nic, read.host, read.length);
  return read.dma;
}

inline nic::DmaId perform(const nic::DmaAtomic& atomic) {
  uint64_t before = 0;
  switch (atomic.width) {
    case 1: before = perform_on<uint8_t>(atomic); break;
    case 2: before = perform_on<uint16_t>(atomic); break;
    case 4: before = perform_on<uint32_t>(atomic); break;
    default: before = perform_on<uint64_t>(atomic); break;
  }
  std::memcpy(atomic.before, &before, sizeof before);
  return atomic.dma;
}

// Changes a word of handler memory. Returns the answer to the handler's call: 1 if a compare_swap has swapped, else 0.
inline uint32_t perform(const nic::LocalAtomic& atomic) {
  std::atomic_ref<uint64_t> word(*reinterpret_cast<uint64_t*>(atomic.local));
  uint64_t before = atomic.compare;
  uint32_t answer = 0;
  if (atomic.kind == nic::AtomicKind::compare_swap) {
    answer = word.compare_exchange_strong(before, atomic.operand) ? 1 : 0;
  } else {
    before = word.fetch_add(atomic.operand);
  }
  if (atomic.before != nullptr) std::memcpy(atomic.before, &before, sizeof before);
  return answer;
}

}  // namespace spinloom::portals
