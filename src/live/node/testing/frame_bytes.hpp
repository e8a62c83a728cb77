// Frames as tests make them.
//
// Threads: pure. Time: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace spinloom::live {

using Bytes = std::vector<uint8_t>;
using Frames = std::vector<Bytes>;

template <class Value>
void put(Bytes& bytes, size_t at, Value value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}
inline uint16_t big(uint16_t value) { return static_cast<uint16_t>(value >> 8 | value << 8); }
inline uint32_t big(uint32_t value) { return __builtin_bswap32(value); }

// From 10.0.0.1 port 4000 to 10.0.0.2 port 9330, with byte i of the payload i * 7 + first.
inline Bytes udp_frame(uint16_t payload, uint8_t first = 1) {
  Bytes bytes(42 + payload);
  for (uint8_t i = 0; i < 6; ++i) bytes[i] = 0x20 + i, bytes[6 + i] = 0x10 + i;
  put(bytes, 12, big(uint16_t{0x0800}));
  bytes[14] = 0x45;
  put(bytes, 16, big(static_cast<uint16_t>(28 + payload)));
  bytes[22] = 64, bytes[23] = 17;
  put(bytes, 26, big(uint32_t{0x0a000001}));
  put(bytes, 30, big(uint32_t{0x0a000002}));
  put(bytes, 34, big(uint16_t{4000}));
  put(bytes, 36, big(uint16_t{9330}));
  put(bytes, 38, big(static_cast<uint16_t>(8 + payload)));
  for (size_t i = 0; i < payload; ++i) bytes[42 + i] = static_cast<uint8_t>(i * 7 + first);
  return bytes;
}
// The frame with both ends exchanged: Ethernet, IP, UDP.
inline Bytes turned(Bytes bytes) {
  std::swap_ranges(bytes.begin(), bytes.begin() + 6, bytes.begin() + 6);
  std::swap_ranges(bytes.begin() + 26, bytes.begin() + 30, bytes.begin() + 30);
  std::swap_ranges(bytes.begin() + 34, bytes.begin() + 36, bytes.begin() + 36);
  return bytes;
}

}  // namespace spinloom::live
