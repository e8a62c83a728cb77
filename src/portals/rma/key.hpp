// Key - the right to access registered memory of a rank, and its form as bytes that users send.
//
// Contract: encode_key() and decode_key() are inverses. decode_key() refuses bytes of another version, and bytes that
//   no encode_key() has made as far as a check sum tells: it finds mistakes, not attacks. The random bits protect the
//   memory: only ranks that were given the key know them.
// Threads: plain values. Time: none.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/result.hpp"

namespace spinloom::rma {

inline constexpr uint32_t right_read = 1;
inline constexpr uint32_t right_write = 2;
inline constexpr uint32_t right_atomic = 4;
inline constexpr uint32_t rights_all = right_read | right_write | right_atomic;

// The notices that notified operations leave at their target.
enum class Notices : uint8_t { none, counted, queued };

struct Key {
  uint32_t rank = 0;
  uint32_t portal = 0;  // the portal table entry of the context
  uint32_t rights = 0;
  Notices notices = Notices::none;
  uint64_t bits = 0;  // the match bits of operations
  uint64_t notice_bits = 0;  // notified operations have them
  uint64_t bytes = 0;
};

using KeyText = std::array<uint8_t, 64>;

[[nodiscard]] KeyText encode_key(const Key& key);
[[nodiscard]] Result<Key> decode_key(const KeyText& text);

}  // namespace spinloom::rma
