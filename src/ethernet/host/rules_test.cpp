// Rules of programs become the NIC's: well-known traffic, fragments, ranges of one byte and of several.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "ethernet/host/desk_record.hpp"
#include "nic/frames/rule_set.hpp"
#include "spinloom/fpspin_compat.h"

namespace spinloom::host {
namespace {

std::vector<uint8_t> frame_of(uint16_t type, uint8_t version_words, uint8_t protocol, uint16_t port, uint16_t flags) {
  std::vector<uint8_t> bytes(64);
  bytes[12] = static_cast<uint8_t>(type >> 8);
  bytes[13] = static_cast<uint8_t>(type);
  bytes[14] = version_words;
  bytes[23] = protocol;
  bytes[36] = static_cast<uint8_t>(port >> 8);
  bytes[37] = static_cast<uint8_t>(port);
  bytes[42] = static_cast<uint8_t>(flags >> 8);
  return bytes;
}

std::optional<frames::Matcher::Match> match(const spl_eth_rules& rules, const std::vector<uint8_t>& bytes) {
  frames::Matcher matcher({});
  auto set = rule_set_of(rules);
  EXPECT_TRUE(set.ok());
  EXPECT_TRUE(matcher.configure({*set}).ok());
  return matcher.match(bytes);
}

TEST(Rules, WellKnownTraffic) {
  const auto udp = frame_of(0x0800, 0x45, 17, 9330, 0x4000);
  const auto eom = frame_of(0x0800, 0x45, 17, 9330, 0xc000);
  const auto icmp = frame_of(0x0800, 0x45, 1, 0, 0);
  const auto arp = frame_of(0x0806, 0, 0, 0, 0);
  const auto options = frame_of(0x0800, 0x46, 17, 9330, 0);
  EXPECT_TRUE(match(spl_eth_rules_udp(9330), udp));
  EXPECT_FALSE(match(spl_eth_rules_udp(9331), udp));
  EXPECT_FALSE(match(spl_eth_rules_udp(9330), options));
  EXPECT_FALSE(match(spl_eth_rules_slmp(9330), udp)->last);
  EXPECT_TRUE(match(spl_eth_rules_slmp(9330), eom)->last);
  EXPECT_TRUE(match(spl_eth_rules_icmp(), icmp));
  EXPECT_FALSE(match(spl_eth_rules_icmp(), udp));
  EXPECT_TRUE(match(spl_eth_rules_arp(), arp));
  EXPECT_FALSE(match(spl_eth_rules_arp(), icmp));
  EXPECT_TRUE(match(spl_eth_rules_all(), arp));
  EXPECT_FALSE(match(spl_eth_rules_never(), arp));
}

// Rules as a program for FPsPIN makes them; fpspin_init hands them to the NIC in this way.
spl_eth_rules of_fpspin(const fpspin_ruleset_t& given) {
  spl_eth_rules rules = spl_eth_rules_never();
  rules.any = given.mode == FPSPIN_MODE_OR ? 1 : 0;
  rules.count = NUM_RULES_PER_RULESET - 1;
  const auto one = [&given](int i) {
    return spl_eth_rule{static_cast<uint32_t>(given.r[i].idx), given.r[i].mask, given.r[i].start, given.r[i].end};
  };
  for (int i = 0; i < NUM_RULES_PER_RULESET - 1; ++i) rules.rule[i] = one(i);
  rules.last_frame = one(NUM_RULES_PER_RULESET - 1);
  return rules;
}

// The constants are those of FPsPIN's library: words of the frame in the order of the network.
// Rules: FPS-27, FPS-35, FPS-36, FPS-37.
TEST(Rules, TheRuleSetsOfFpspinsLibrary) {
  const auto same = [](const fpspin_rule& rule, int index, uint32_t mask, uint32_t start, uint32_t end) {
    return rule.idx == index && rule.mask == mask && rule.start == start && rule.end == end;
  };
  EXPECT_TRUE(same(FPSPIN_RULE_IP, 3, 0xffff0000, 0x08000000, 0x08000000));
  EXPECT_TRUE(same(FPSPIN_RULE_IP_PROTO(6), 5, 0xff, 6, 6));
  EXPECT_TRUE(same(FPSPIN_RULE_UDP_SPORT(0x1234), 8, 0xffff, 0x1234, 0x1234));
  EXPECT_TRUE(same(FPSPIN_RULE_UDP_DPORT(0x1234), 9, 0xffff0000, 0x12340000, 0x12340000));
  EXPECT_TRUE(same(FPSPIN_RULE_FALSE, 0, 0, 1, 0));
  EXPECT_TRUE(same(FPSPIN_RULE_EMPTY, 0, 0, 0, 0));
  fpspin_ruleset_t slmp, udp, all, bypass;
  fpspin_ruleset_slmp(&slmp);
  fpspin_ruleset_udp(&udp);
  fpspin_ruleset_match(&all);
  fpspin_ruleset_bypass(&bypass);
  EXPECT_TRUE(same(slmp.r[3], 10, 0x8000, 0x8000, 0x8000));
  for (const fpspin_ruleset_t* const made : {&slmp, &udp, &all, &bypass}) EXPECT_EQ(made->mode, FPSPIN_MODE_AND);
  const auto datagram = frame_of(0x0800, 0x45, 17, 77, 0);
  const auto begin = frame_of(0x0800, 0x45, 17, 9330, 0x4000);
  const auto end = frame_of(0x0800, 0x45, 17, 9330, 0xc000);
  const auto arp = frame_of(0x0806, 0, 0, 0, 0);
  EXPECT_FALSE(match(of_fpspin(slmp), datagram));
  EXPECT_FALSE(match(of_fpspin(slmp), begin)->last);
  EXPECT_TRUE(match(of_fpspin(slmp), end)->last);
  EXPECT_TRUE(match(of_fpspin(udp), datagram));
  EXPECT_FALSE(match(of_fpspin(udp), arp));
  EXPECT_FALSE(match(of_fpspin(udp), end)->last);
  EXPECT_TRUE(match(of_fpspin(all), arp)->last);
  EXPECT_FALSE(match(of_fpspin(bypass), end));
}

// One byte of the request's number, four of its length, two of the HPU; the last byte is free.
// Rules: FPS-57.
TEST(Flags, AreEightBytes) {
  fpspin_flag_t flag{};
  flag.dma_id = 0x11;
  flag.len = 0x22334455;
  flag.hpu_id = 0x6677;
  const std::array<uint8_t, 8> expected{0x11, 0x55, 0x44, 0x33, 0x22, 0x77, 0x66, 0};
  ASSERT_EQ(sizeof flag, expected.size());
  EXPECT_EQ(std::memcmp(&flag, expected.data(), expected.size()), 0);
  EXPECT_EQ(flag.data, SPL_HOST_FLAG(0x11, 0x22334455, 0x6677));
  EXPECT_EQ(SPL_HOST_FLAG_ID(flag.data), 0x11);
  EXPECT_EQ(SPL_HOST_FLAG_LENGTH(flag.data), 0x22334455u);
  EXPECT_EQ(SPL_HOST_FLAG_HPU(flag.data), 0x6677);
}

// A fragment has no header of UDP where the rules look, or not its whole datagram.
TEST(Rules, FragmentsAreLeft) {
  for (const auto& [at, value] : {std::pair<size_t, uint8_t>{20, 0x20}, {20, 0x01}, {21, 0x01}}) {
    auto udp = frame_of(0x0800, 0x45, 17, 9330, 0);
    auto icmp = frame_of(0x0800, 0x45, 1, 0, 0);
    udp[at] = icmp[at] = value;
    EXPECT_FALSE(match(spl_eth_rules_udp(9330), udp)) << at;
    EXPECT_FALSE(match(spl_eth_rules_slmp(9330), udp)) << at;
    EXPECT_FALSE(match(spl_eth_rules_icmp(), icmp)) << at;
  }
  auto whole = frame_of(0x0800, 0x45, 17, 9330, 0);
  whole[20] = 0x40;  // "don't fragment"
  EXPECT_TRUE(match(spl_eth_rules_udp(9330), whole));
}

// holds(word) = start <= (word & mask) <= end with the word in the order of the wire, for every value of each byte.
// Rules: FPS-23.
TEST(Rules, ARangeOfOneByteKeepsItsMeaning) {
  for (uint32_t byte = 0; byte < 4; ++byte) {
    const uint32_t shift = 24 - 8 * byte;
    for (const auto& [low, high, mask] : {std::array{3u, 200u, 0xffu}, {0x10u, 0x70u, 0xf0u}, {0u, 255u, 0xffu}}) {
      const spl_eth_rule rule{1, mask << shift, low << shift, high << shift};
      spl_eth_rules rules = spl_eth_rules_never();
      rules.rule[0] = rule;
      for (uint32_t value = 0; value < 256; ++value) {
        std::vector<uint8_t> bytes(64, 0x5a);
        bytes[4 + byte] = static_cast<uint8_t>(value);
        const bool holds = low <= (value & mask) && (value & mask) <= high;
        EXPECT_EQ(match(rules, bytes).has_value(), holds) << byte << ' ' << value;
      }
    }
  }
  spl_eth_rules beside = spl_eth_rules_never();
  beside.rule[0] = {1, 0xff00, 0x0001, 0x02ff};  // bounds between values of the byte: 1 and 2 hold
  for (uint32_t value = 0; value < 4; ++value) {
    std::vector<uint8_t> bytes(64);
    bytes[6] = static_cast<uint8_t>(value);
    EXPECT_EQ(match(beside, bytes).has_value(), value == 1 || value == 2) << value;
  }
}

TEST(Rules, ARangeOverSeveralBytesIsRefused) {
  spl_eth_rules rules = spl_eth_rules_never();
  rules.rule[0] = {9, 0xffff0000, 0x00500000, 0x00600000};
  const auto made = rule_set_of(rules);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().message.find("word 9"), std::string::npos);
}

}  // namespace
}  // namespace spinloom::host
