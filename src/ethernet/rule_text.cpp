#include "ethernet/rule_text.hpp"

#include <charconv>

#include "spinloom/frame.h"

namespace spinloom::ethernet {
namespace {

using frame::Rule;
using frame::RuleMode;
using frame::RuleSet;

constexpr Rule equals(uint32_t index, uint32_t mask, uint32_t value) { return {index, mask, value, value}; }

// Words are read in little-endian order: the first byte of a word is its lowest.
constexpr Rule type_is(uint16_t type) {
  return equals(3, 0xffff, static_cast<uint32_t>(type >> 8 | (type & 0xff) << 8));
}
// Version 4, five words of header.
constexpr Rule plain_ipv4 = equals(3, 0xffffff, 0x450008);
// Byte 23; bytes 20 and 21 say that it is not a fragment, whatever their bit "don't fragment".
constexpr Rule protocol_is(uint8_t protocol) { return equals(5, 0xff00ff3f, uint32_t{protocol} << 24); }
constexpr Rule port_is(uint16_t port) {
  return equals(9, 0xffff, static_cast<uint32_t>(port >> 8 | (port & 0xff) << 8));
}
constexpr Rule end_of_message = equals(10, 0x800000, 0x800000);

constexpr uint8_t icmp = 1;
constexpr uint8_t udp = 17;

RuleSet datagrams(uint16_t port) {
  return {RuleMode::all, {plain_ipv4, protocol_is(udp), port_is(port)}, Rule::never()};
}

}  // namespace

Result<RuleSet> rule_set_named(std::string_view text) {
  if (text == "all") return RuleSet{RuleMode::all, {Rule::always()}, Rule::never()};
  if (text == "ip") return RuleSet{RuleMode::all, {plain_ipv4}, Rule::never()};
  if (text == "arp") return RuleSet{RuleMode::all, {type_is(0x0806)}, Rule::never()};
  if (text == "icmp") return RuleSet{RuleMode::all, {plain_ipv4, protocol_is(icmp)}, Rule::never()};
  if (text == "slmp") {
    RuleSet out = datagrams(SPL_SLMP_PORT);
    out.last_frame = end_of_message;
    return out;
  }
  if (text.starts_with("udp:")) {
    const std::string_view digits = text.substr(4);
    uint16_t port = 0;
    const auto [end, trouble] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (trouble != std::errc{} || end != digits.data() + digits.size() || port == 0) {
      return fail(Code::invalid, "rules '", text, "': a UDP port is a number from 1 to 65535, as in udp:9330");
    }
    return datagrams(port);
  }
  return fail(Code::invalid, "there are no rules called '", text, "'; there are udp:PORT, slmp, icmp, arp, ip and all");
}

}  // namespace spinloom::ethernet
