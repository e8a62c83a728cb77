#include "base/printable.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <utility>

namespace spinloom {
namespace {

constexpr std::array<std::pair<uint32_t, uint32_t>, 13> escaped_ranges = {{{0x00, 0x08},
                                                                           {0x0b, 0x1f},
                                                                           {0x7f, 0x9f},
                                                                           {0xad, 0xad},
                                                                           {0x61c, 0x61c},
                                                                           {0x180e, 0x180e},
                                                                           {0x200b, 0x200f},
                                                                           {0x2028, 0x202e},
                                                                           {0x2060, 0x206f},
                                                                           {0xfe00, 0xfe0f},
                                                                           {0xfeff, 0xfeff},
                                                                           {0xfff0, 0xfffb},
                                                                           {0xe0000, 0xe0fff}}};

bool is_escaped(uint32_t code) {
  return std::ranges::any_of(escaped_ranges,
                             [code](const auto& range) { return range.first <= code && code <= range.second; });
}

// Returns the character that `text` begins with and its number of bytes. Where the first byte begins no character, it
// returns that byte and 0.
std::pair<uint32_t, size_t> first_of(std::string_view text) {
  const auto byte = [text](size_t at) { return static_cast<uint8_t>(text[at]); };
  const uint8_t head = byte(0);
  if (head < 0x80) return {head, 1};
  const size_t bytes = head >= 0xf0 ? 4 : head >= 0xe0 ? 3 : 2;
  if (head < 0xc2 || head > 0xf4 || text.size() < bytes) return {head, 0};
  uint32_t code = head & (0xffu >> (bytes + 1));
  for (size_t at = 1; at < bytes; ++at) {
    if ((byte(at) & 0xc0) != 0x80) return {head, 0};
    code = code << 6 | (byte(at) & 0x3fu);
  }
  constexpr std::array<uint32_t, 5> code_min = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_half = 0xd800 <= code && code <= 0xdfff;
  if (code < code_min[bytes] || code > 0x10ffff || is_half) return {head, 0};
  return {code, bytes};
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto [code, bytes] = first_of(text);
    if (bytes != 0 && !is_escaped(code)) {
      out += text.substr(0, bytes);
    } else {
      char written[16];
      std::snprintf(written, sizeof written, code <= 0xff ? "\\x%02x" : code <= 0xffff ? "\\u%04x" : "\\U%08x", code);
      out += written;
    }
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return out;
}

}  // namespace spinloom
