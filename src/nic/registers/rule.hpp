// Rule - what the matching engine compares with one word of a frame, and the rules for common headers.
//
// Contract: a frame is 32-bit words, the first byte of a word being the least significant. A rule holds if
//   start <= (word & mask) <= end. Headers are in network order, and so are the rules that ip(), udp_destination() and
//   the like give; swapped() makes registers' values of them, as the board's library does by htonl.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>

namespace spinloom::registers {

struct Rule {
  uint32_t index = 0;
  uint32_t mask = 0;
  uint32_t start = 1;
  uint32_t end = 0;
  bool operator==(const Rule&) const = default;
};

[[nodiscard]] constexpr uint32_t swapped(uint32_t word) {
  return (word >> 24) | ((word >> 8) & 0xff00u) | ((word << 8) & 0xff0000u) | (word << 24);
}
[[nodiscard]] constexpr Rule swapped(const Rule& rule) {
  return {rule.index, swapped(rule.mask), swapped(rule.start), swapped(rule.end)};
}

// The rule after reset. The board's library calls a set of such rules bypass. It swaps their bytes, too; the swapped
// rule never holds either.
[[nodiscard]] constexpr Rule never() { return {0, 0, 1, 0}; }
[[nodiscard]] constexpr Rule always() { return {0, 0, 0, 0}; }

// In network order, for frames with an Ethernet header of 14 B and an IPv4 header without options.
[[nodiscard]] constexpr Rule equal(uint32_t index, uint32_t mask, uint32_t value) {
  return {index, mask, value, value};
}
[[nodiscard]] constexpr Rule ip() { return equal(3, 0xffff0000, 0x08000000); }
[[nodiscard]] constexpr Rule ip_protocol(uint8_t protocol) { return equal(5, 0xff, protocol); }
[[nodiscard]] constexpr Rule udp() { return ip_protocol(17); }
[[nodiscard]] constexpr Rule udp_source(uint16_t port) { return equal(8, 0xffff, port); }
[[nodiscard]] constexpr Rule udp_destination(uint16_t port) { return equal(9, 0xffff0000, uint32_t{port} << 16); }
[[nodiscard]] constexpr Rule slmp_end_of_message() { return equal(10, 0x8000, 0x8000); }

}  // namespace spinloom::registers
