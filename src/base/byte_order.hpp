// Byte order - whole numbers at any place among bytes, the same on every machine: _le with the least significant byte
// first, _be with the most significant one first, as network headers have them.
//
// Contract: nothing is checked: the caller knows that the bytes are there. Threads: pure. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spinloom {

// Compilers turn each of these loops into one load or store, and a swap for the other order.
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

template <class T>
[[nodiscard]] inline T load_be(const uint8_t* at) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value = value << 8 | at[i];
  return static_cast<T>(value);
}

template <class T>
inline void store_be(uint8_t* at, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    at[i] = static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * (sizeof(T) - 1 - i)));
  }
}

}  // namespace spinloom
