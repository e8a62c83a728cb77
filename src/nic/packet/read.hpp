// Read - what reading a wire object gives: the object, or which rule its bytes break.
//
// Contract: the readers of this floor (read_ethernet() and the like) take any bytes, never look outside of them, and
//   never give a payload that ends behind them. They neither allocate nor throw: a Trouble is one byte, which a data
//   path can count; sentence() says it to people.
// Invariants: (1) `value` means something only when `trouble` is none; (2) sentence() has a text for each Trouble.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.hpp"

namespace spinloom::packet {

using Bytes = std::span<const uint8_t>;

enum class Trouble : uint8_t {
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
inline constexpr int trouble_count = static_cast<int>(Trouble::icmp_checksum) + 1;

// Says what is wrong, and names the rule's source: "an IPv4 header's checksum is wrong (RFC 791, section 3.1)".
[[nodiscard]] const char* sentence(Trouble trouble);

template <class T>
struct [[nodiscard]] Read {
  T value{};
  Trouble trouble = Trouble::none;

  Read(T found) : value(found) {}
  Read(Trouble wrong) : trouble(wrong) { SPL_ASSERT(wrong != Trouble::none, "no trouble, and nothing read"); }

  [[nodiscard]] bool ok() const { return trouble == Trouble::none; }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] const T& operator*() const { return value; }
  [[nodiscard]] const T* operator->() const { return &value; }
};

}  // namespace spinloom::packet
