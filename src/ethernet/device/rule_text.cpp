#include "ethernet/device/rule_text.hpp"

#include <charconv>

#include "ethernet/host/desk_record.hpp"
#include "spinloom/frame.h"

namespace spinloom::ethernet {
namespace {

// of_messages() returns the host library's rules in the form of the matching unit. of_frames() also takes out the end
// of messages, which most of these rules see in every frame.
frames::RuleSet of_messages(const spl_eth_rules& rules) { return host::rule_set_of(rules).value(); }
frames::RuleSet of_frames(const spl_eth_rules& rules) {
  frames::RuleSet out = of_messages(rules);
  out.last_frame = frames::Rule::never();
  return out;
}

// IPv4 with five words of header: one without options.
constexpr spl_eth_rules plain_ipv4{0, 1, {{3, 0xffffff00, 0x08004500, 0x08004500}}, {}};

}  // namespace

Result<frames::RuleSet> rule_set_named(std::string_view text) {
  if (text == "all") return of_frames(spl_eth_rules_all());
  if (text == "ip") return of_frames(plain_ipv4);
  if (text == "arp") return of_frames(spl_eth_rules_arp());
  if (text == "icmp") return of_frames(spl_eth_rules_icmp());
  if (text == "slmp") return of_messages(spl_eth_rules_slmp(SPL_SLMP_PORT));
  if (text.starts_with("udp:")) {
    const std::string_view digits = text.substr(4);
    uint16_t port = 0;
    const auto [end, trouble] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (trouble != std::errc{} || end != digits.data() + digits.size() || port == 0) {
      return fail(Code::invalid, "rules '", text, "': a UDP port is a number from 1 to 65535, as in udp:9330");
    }
    return of_frames(spl_eth_rules_udp(port));
  }
  return fail(Code::invalid, "there are no rules called '", text, "'; there are udp:PORT, slmp, icmp, arp, ip and all");
}

}  // namespace spinloom::ethernet
