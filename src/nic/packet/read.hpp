// Read - what reading a wire object gives: the object, or which rule its bytes break.
//
// Contract: the readers of this floor (read_ethernet() and the like) take any bytes, never look outside of them, and
//   never give a payload that ends behind them. They neither allocate nor throw: a ReadError is one byte, which a data
//   path can count; sentence() says it to people.
// Invariants: (1) `value` means something only when `error` is none; (2) sentence() has a text for each ReadError.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.hpp"

namespace spinloom::packet {

using Bytes = std::span<const uint8_t>;

enum class ReadError : uint8_t {
  none,
  short_ethernet,
  many_tags,
  long_llc,
  short_arp,
  foreign_arp,
  short_ipv4,
  ipv4_version,
  ipv4_header_length,
  ipv4_total_length,
  ipv4_checksum,
  ipv4_fragment_end,
  ipv4_fragment_size,
  fragment_of_datagram,
  other_protocol,
  short_udp,
  udp_length,
  udp_checksum,
  short_icmp,
  icmp_checksum,
};
inline constexpr int read_error_count = static_cast<int>(ReadError::icmp_checksum) + 1;

// Says what is wrong, and names the rule's source: "an IPv4 header's checksum is wrong (RFC 791, section 3.1)".
[[nodiscard]] const char* sentence(ReadError error);

template <class T>
struct [[nodiscard]] ReadResult {
  T value{};
  ReadError error = ReadError::none;

  ReadResult(T value_) : value(value_) {}
  ReadResult(ReadError error_) : error(error_) { SPL_ASSERT(error != ReadError::none, "no error, and nothing read"); }

  [[nodiscard]] bool ok() const { return error == ReadError::none; }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] const T& operator*() const { return value; }
  [[nodiscard]] const T* operator->() const { return &value; }
};

}  // namespace spinloom::packet
