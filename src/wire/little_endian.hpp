// Little-endian - whole numbers at any place among bytes, least significant byte first on every machine.
//
// Contract: load_le() and store_le() check nothing: the caller knows that the bytes are there. Threads: pure. Time:
//   none.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spinloom::wire {

// Compilers turn each of these loops into one load or store.
template <class T>
[[nodiscard]] inline T load_le(const uint8_t* at) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= uint64_t{at[i]} << (8 * i);
  return static_cast<T>(value);
}

template <class T>
inline void store_le(uint8_t* at, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) at[i] = static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i));
}

}  // namespace spinloom::wire
