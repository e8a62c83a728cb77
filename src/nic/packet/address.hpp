// Addresses - of Ethernet stations and of IPv4 hosts, as values, and as text.
//
// Contract: MacAddress is six bytes as on the wire; Ipv4Address is a number, 10.0.0.1 being 0x0a000001. to_text() gives
//   "02:00:00:00:00:01" and "10.0.0.1". parse_mac() and parse_ipv4() read these forms, also with capitals and with
//   fewer or leading digits (at most 2 and 3 a number), and give an Error with the text for all others.
// Invariants: (1) parse(to_text(a)) is a.
// Threads: plain values. Time: none.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace spinloom::packet {

struct MacAddress {
  std::array<uint8_t, 6> bytes{};

  // True for addresses of more than one station: broadcast and multicast.
  [[nodiscard]] bool is_group() const { return (bytes[0] & 1) != 0; }
  friend auto operator<=>(const MacAddress&, const MacAddress&) = default;
};

inline constexpr MacAddress broadcast{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

struct Ipv4Address {
  uint32_t value = 0;

  friend auto operator<=>(const Ipv4Address&, const Ipv4Address&) = default;
};

[[nodiscard]] MacAddress load_mac(const uint8_t* at);
void store_mac(uint8_t* at, const MacAddress& address);

[[nodiscard]] std::string to_text(const MacAddress& address);
[[nodiscard]] std::string to_text(Ipv4Address address);
[[nodiscard]] Result<MacAddress> parse_mac(std::string_view text);
[[nodiscard]] Result<Ipv4Address> parse_ipv4(std::string_view text);

}  // namespace spinloom::packet
