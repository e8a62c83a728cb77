// SLMP's header byte by byte, with acknowledgements and reports, and what is no header.
#include "ethernet/slmp/header.hpp"

#include <gtest/gtest.h>

#include "base/testing/seeds.hpp"

namespace spinloom::slmp {
namespace {

// flags 2 B, message ID 4 B, offset 4 B, each with the most significant byte first.
// Rules: SLMP-1, SLMP-2, SLMP-3.
TEST(SlmpHeader, BytesAreThoseOfTheProtocol) {
  const Header header{eom | syn, 0x01020304, 0x05060708};
  const std::array<uint8_t, header_bytes> expected{0xc0, 0x00, 1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(write(header), expected);
  EXPECT_EQ(read(expected).value(), header);
  EXPECT_EQ(print(header), "SYN EOM message 16909060 offset 84281096");
}

// Rules: SLMP-3, SLMP-15.
TEST(SlmpHeader, AnAcknowledgementHasTheSameHeaderAndNoOtherFlag) {
  const std::array<uint8_t, header_bytes> expected{0x20, 0x00, 0, 0, 0, 9, 0, 0, 5, 0x80};
  EXPECT_EQ(write(acknowledgement({eom | syn, 9, 1408})), expected);
}

// A packet asks with 0x1000; its acknowledgement has that, too, and four bytes more.
// Rules: SLMP-51.
TEST(SlmpHeader, AReportIsBehindTheHeader) {
  const Header answer = acknowledgement({syn | report, 9, 1408}, 0x01020304);
  EXPECT_EQ(answer, (Header{ack | report, 9, 1408, 0x01020304}));
  std::vector<uint8_t> bytes{0x30, 0x00, 0, 0, 0, 9, 0, 0, 5, 0x80, 1, 2, 3, 4};
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + header_bytes, write(answer).begin()));
  EXPECT_TRUE(std::equal(bytes.begin() + header_bytes, bytes.end(), write_report(answer).begin()));
  EXPECT_EQ(read(bytes).value(), answer);
  EXPECT_EQ(print(answer), "ACK REPORT message 9 offset 1408 room 16909060");
  EXPECT_EQ(acknowledgement({syn, 9, 1408}, 5), (Header{ack, 9, 1408}));
  bytes.pop_back();
  EXPECT_FALSE(read(bytes).ok());
  bytes.resize(header_bytes + report_bytes + 1);
  EXPECT_FALSE(read(bytes).ok());
}

// payload_max = 1500 - 20 (IP) - 8 (UDP) - 10 (SLMP) = 1462; the frame's headers are 14 + 20 + 8 + 10 = 52 B.
// Rules: SLMP-10.
TEST(SlmpHeader, APacketFillsAnEthernetFrame) {
  EXPECT_EQ(payload_bytes_max, 1500 - 20 - 8 - header_bytes);
  EXPECT_EQ(14 + 20 + 8 + header_bytes, 52);
}

TEST(SlmpHeader, EveryHeaderComesBack) {
  for_seeds(200, [](Random& random) {
    Header header{0, static_cast<uint32_t>(random.next()), static_cast<uint32_t>(random.next())};
    header.flags = random.chance(1, 4) ? ack : static_cast<uint16_t>(random.below(4) << 14);
    if (header.has(syn) && random.chance(1, 2)) header.flags |= report;
    ASSERT_EQ(read(write(header)).value(), header);
  });
}

// Rules: SLMP-5.
TEST(SlmpHeader, WhatIsNoHeaderIsRefusedWithAReason) {
  const auto sentence = [](std::span<const uint8_t> bytes) { return read(bytes).error().message; };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  std::array<uint8_t, header_bytes> bytes = write({syn, 1, 2});
  EXPECT_TRUE(has(sentence({bytes.data(), 9}), "9 bytes is shorter"));
  bytes[1] = 1;
  EXPECT_TRUE(has(sentence(bytes), "reserved"));
  bytes = write({ack | syn, 1, 2});
  EXPECT_TRUE(has(sentence(bytes), "neither SYN nor EOM"));
  bytes = write({report | eom, 1, 2});
  EXPECT_TRUE(has(sentence(bytes), "REPORT without SYN"));
  std::array<uint8_t, header_bytes + 1> longer{};
  longer[0] = 0x20;
  EXPECT_TRUE(has(sentence(longer), "1 bytes of payload"));
}

}  // namespace
}  // namespace spinloom::slmp
