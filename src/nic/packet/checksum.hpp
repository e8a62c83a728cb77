// Internet checksum - the ones' complement sum of 16-bit words of IPv4, UDP, TCP and ICMP (RFC 1071).
//
// Contract: Checksum adds parts of a message in their order; a part of odd length is padded with a zero byte, so only
//   the last may be odd. finish() is the number of the header's field. Over a message whose field is right, finish()
//   is 0. update_checksum() is the field after one 16-bit word of the message has changed, without the others
//   (RFC 1624, equation 3).
// Invariants: (1) the sum does not depend on the machine's byte order (RFC 1071, section 2B); (2) a part of any length
//   below 2^35 bytes does not overflow.
// Threads: plain values. Time: none. Eight bytes a step, four steps at once.
#pragma once

#include <cstdint>

#include "nic/packet/read.hpp"

namespace spinloom::packet {

class Checksum {
 public:
  Checksum& add(Bytes part);
  Checksum& add(uint16_t word);
  Checksum& add(uint32_t words) { return add(static_cast<uint16_t>(words >> 16)).add(static_cast<uint16_t>(words)); }
  [[nodiscard]] uint16_t finish() const;

 private:
  uint64_t sum_ = 0;  // the sum of words as this machine loads them
};

[[nodiscard]] inline uint16_t checksum(Bytes message) { return Checksum().add(message).finish(); }

[[nodiscard]] uint16_t update_checksum(uint16_t checksum, uint16_t before, uint16_t after);

}  // namespace spinloom::packet
