// Tag - what seals a datagram: 64 bits that only holders of the key can make, from bytes that lie in two places.
//
// Contract: tag_of(key, head, body) depends on the bytes of head and body one after the other, not on where they are
//   split. Fewer than `lanes_bytes_min` bytes have the tag of SipHash-2-4. SipHash takes 8 bytes at a time, each after
//   the one before; so longer inputs go through eight SipHash-2-4 states side by side, which processors advance
//   together. The input is filled up with zeros to a multiple of 64 bytes; its word i goes to state i mod 8. The four
//   words of each state and the length are the input of one more SipHash-2-4, which ends in the usual way. All of these
//   states begin with constants of their own in the second word: no state stands for two inputs.
// Security: every step is SipHash-2-4's, and no state of 256 bits is made shorter before the end. Two inputs with one
//   tag need equal states of an inner SipHash, or a collision of the last, as they do for SipHash-2-4 itself. So a
//   tag is forged only by guessing its 64 bits.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <span>

#include "nic/wire/siphash.hpp"

namespace spinloom::wire {

inline constexpr size_t lanes_bytes_min = 512;

[[nodiscard]] uint64_t tag_of(const SipKey& key, std::span<const uint8_t> head, std::span<const uint8_t> body);

}  // namespace spinloom::wire
