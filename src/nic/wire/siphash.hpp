// SipHash - SipHash-2-4 (Aumasson, Bernstein 2012): a keyed 64-bit tag for short inputs.
//
// Contract: without the key nobody finds an input to a tag, or a tag to an input. A holder of the key notices damage to
//   an input, except in one case of 2^64. The tests have the reference vectors of the paper and of its code.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <span>

namespace spinloom::wire {

// 128 bits that the processes of one job share and nobody else has.
struct SipKey {
  uint64_t low = 0;
  uint64_t high = 0;
};

[[nodiscard]] uint64_t siphash(const SipKey& key, std::span<const uint8_t> bytes);

}  // namespace spinloom::wire
