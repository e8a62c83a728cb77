// Rule sets for well-known traffic. Sources: FPsPIN's host library (the words that it compares); RFC 791, 768, 792,
// 826.
#include "spinloom/ethernet.h"

namespace {

constexpr spl_eth_rule never{0, 0, 1, 0};
constexpr spl_eth_rule always{0, 0, 0, 0};
constexpr spl_eth_rule value_at(uint32_t index, uint32_t mask, uint32_t value) { return {index, mask, value, value}; }

constexpr spl_eth_rule is_arp = value_at(3, 0xffff0000, 0x08060000);
// Without options, so that what follows lies where the rules look.
constexpr spl_eth_rule is_plain_ipv4 = value_at(3, 0xffffff00, 0x08004500);
// Matches packets of this protocol that are not fragments, whatever their bit "don't fragment" says: in a fragment, the
// protocol's header need not follow.
constexpr spl_eth_rule protocol(uint32_t number) { return value_at(5, 0x3fff00ff, number); }

}  // namespace

spl_eth_rules spl_eth_rules_never(void) { return {0, 1, {never}, never}; }
spl_eth_rules spl_eth_rules_all(void) { return {0, 1, {always}, always}; }
spl_eth_rules spl_eth_rules_udp(uint16_t port) {
  return {0, 3, {is_plain_ipv4, protocol(17), value_at(9, 0xffff0000, static_cast<uint32_t>(port) << 16)}, always};
}
spl_eth_rules spl_eth_rules_slmp(uint16_t port) {
  spl_eth_rules rules = spl_eth_rules_udp(port);
  rules.last_frame = value_at(10, 0x8000, 0x8000);
  return rules;
}
spl_eth_rules spl_eth_rules_icmp(void) { return {0, 2, {is_plain_ipv4, protocol(1)}, always}; }
spl_eth_rules spl_eth_rules_arp(void) { return {0, 1, {is_arp}, always}; }
