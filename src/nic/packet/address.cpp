#include "nic/packet/address.hpp"

#include <algorithm>
#include <charconv>

namespace spinloom::packet {

namespace {

// Reads `Parts` numbers below 256 with `separator` between them, each of at most `digits` digits. False for other
// texts.
template <size_t Parts>
bool parse_numbers(std::string_view text, char separator, int base, size_t digits, std::array<uint8_t, Parts>& out) {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (size_t i = 0; i < Parts; ++i) {
    if (i > 0 && (at == end || *at++ != separator)) return false;
    const auto [next, problem] = std::from_chars(at, end, out[i], base);
    if (problem != std::errc() || next > at + digits) return false;
    at = next;
  }
  return at == end;
}

}  // namespace

MacAddress load_mac(const uint8_t* at) {
  MacAddress address;
  std::copy_n(at, address.bytes.size(), address.bytes.begin());
  return address;
}

void store_mac(uint8_t* at, const MacAddress& address) { std::copy(address.bytes.begin(), address.bytes.end(), at); }

std::string to_text(const MacAddress& address) {
  constexpr const char* digits = "0123456789abcdef";
  std::string out;
  for (const uint8_t byte : address.bytes) {
    if (!out.empty()) out += ':';
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

std::string to_text(Ipv4Address address) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) {
    if (!out.empty()) out += '.';
    out += std::to_string(address.value >> shift & 255);
  }
  return out;
}

Result<MacAddress> parse_mac(std::string_view text) {
  MacAddress address;
  if (parse_numbers(text, ':', 16, 2, address.bytes)) return address;
  return fail(Code::invalid, "'", text, "' is no Ethernet address; write six bytes like 02:00:00:00:00:01");
}

Result<Ipv4Address> parse_ipv4(std::string_view text) {
  std::array<uint8_t, 4> parts{};
  if (!parse_numbers(text, '.', 10, 3, parts)) {
    return fail(Code::invalid, "'", text, "' is no IPv4 address; write four numbers like 10.0.0.1");
  }
  uint32_t value = 0;
  for (const uint8_t part : parts) value = value << 8 | part;
  return Ipv4Address{value};
}

}  // namespace spinloom::packet
