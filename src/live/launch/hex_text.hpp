// Hex text - any bytes as letters that every launcher accepts: two hexadecimal digits for each byte.
//
// Contract: to_hex() writes the bytes; from_hex() reads them back, and has no value for any other text.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace spinloom::live {

[[nodiscard]] inline std::string to_hex(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += digits[static_cast<uint8_t>(byte) >> 4];
    text += digits[static_cast<uint8_t>(byte) & 15];
  }
  return text;
}

[[nodiscard]] inline std::optional<std::string> from_hex(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (size_t at = 0; at < text.size(); at += 2) {
    const size_t high = digits.find(text[at]), low = digits.find(text[at + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    bytes += static_cast<char>(high << 4 | low);
  }
  return bytes;
}

}  // namespace spinloom::live
