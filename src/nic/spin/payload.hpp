// Payload - bytes that an engine speaks of and that its driver moves.
//
// Contract: a reference, not a copy: {inline | local memory | peer memory}; the engine never dereferences it, drivers
//   do.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace spinloom::spin {

struct PayloadRef {
  enum class Space : uint8_t { none, inline_bytes, local, peer };
  Space space = Space::none;
  const uint8_t* bytes = nullptr;
  uint64_t length = 0;
};

// Copies the pieces of a payload, in order, to one place.
inline void gather(const std::vector<PayloadRef>& pieces, uint8_t* to) {
  for (const PayloadRef& piece : pieces) {
    std::memcpy(to, piece.bytes, piece.length);
    to += piece.length;
  }
}

}  // namespace spinloom::spin
