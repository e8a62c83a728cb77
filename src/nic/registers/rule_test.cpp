// Rules of common headers, held against frames that are laid out byte by byte.
#include "nic/registers/rule.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace spinloom::registers {
namespace {

// Ethernet 14 B, IPv4 20 B, UDP 8 B, SLMP flags: network order, so the high byte of a field comes first.
std::vector<uint8_t> slmp_frame(uint16_t source, uint16_t destination, uint16_t flags) {
  std::vector<uint8_t> frame(52);
  const auto put = [&frame](size_t at, uint16_t value) {
    frame[at] = static_cast<uint8_t>(value >> 8);
    frame[at + 1] = static_cast<uint8_t>(value);
  };
  put(12, 0x0800);
  frame[14] = 0x45;
  frame[22] = 64;  // time to live, in the word of the protocol
  frame[23] = 17;
  put(32, 0x0a01);  // end of the destination's address, in the word of the source port
  put(34, source);
  put(36, destination);
  put(38, 18);  // UDP length, in the word of the destination port
  put(42, flags);
  return frame;
}

// Word i of the frame; bytes behind its end are 0.
uint32_t word_of(const std::vector<uint8_t>& frame, uint32_t index) {
  uint32_t word = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const size_t at = size_t{index} * 4 + i;
    if (at < frame.size()) word |= uint32_t{frame[at]} << (8 * i);
  }
  return word;
}

bool holds(const Rule& rule, uint32_t word) {
  return rule.start <= (word & rule.mask) && (word & rule.mask) <= rule.end;
}

bool matches(const Rule& network_order, const std::vector<uint8_t>& frame) {
  const Rule rule = swapped(network_order);
  return holds(rule, word_of(frame, rule.index));
}

// Rules: FPS-27.
TEST(Rule, RegistersHoldTheSwappedWords) {
  // EtherType 0x0800 is bytes 08 00 at 12: of word 3 the low half, 0x0008.
  EXPECT_EQ(swapped(ip()), (Rule{3, 0x0000ffff, 0x00000008, 0x00000008}));
  EXPECT_EQ(swapped(udp()), (Rule{5, 0xff000000, 0x11000000, 0x11000000}));
  // Port 9330 is 0x2472: bytes 24 72 at 36, low half of word 9.
  EXPECT_EQ(swapped(udp_destination(9330)), (Rule{9, 0x0000ffff, 0x00007224, 0x00007224}));
  EXPECT_EQ(swapped(slmp_end_of_message()), (Rule{10, 0x00800000, 0x00800000, 0x00800000}));
  EXPECT_EQ(swapped(swapped(udp_source(0x1234))), udp_source(0x1234));
}

// Rules: FPS-36.
TEST(Rule, HeadersAreFound) {
  const auto frame = slmp_frame(4000, 9330, 0x4000);
  EXPECT_TRUE(matches(ip(), frame));
  EXPECT_TRUE(matches(udp(), frame));
  EXPECT_FALSE(matches(ip_protocol(6), frame));
  EXPECT_TRUE(matches(udp_source(4000), frame));
  EXPECT_FALSE(matches(udp_source(9330), frame));
  EXPECT_TRUE(matches(udp_destination(9330), frame));
  EXPECT_FALSE(matches(udp_destination(9331), frame));
  EXPECT_FALSE(matches(slmp_end_of_message(), frame));
  EXPECT_TRUE(matches(slmp_end_of_message(), slmp_frame(4000, 9330, 0xc000)));
}

// Rules: FPS-35.
TEST(Rule, NeverAndAlways) {
  for (const uint32_t word : {0u, 1u, 0x01000000u, 0xffffffffu}) {
    EXPECT_FALSE(holds(never(), word)) << word;
    EXPECT_FALSE(holds(swapped(never()), word)) << word;
    EXPECT_TRUE(holds(always(), word)) << word;
  }
}

}  // namespace
}  // namespace spinloom::registers
