// Packets as bytes: there and back, every length cut, every enumeration beyond its end.
#include "nic/wire/packet_format.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "base/byte_order.hpp"
#include "nic/wire/testing/random_packet.hpp"

namespace spinloom::wire {
namespace {

std::vector<uint8_t> counting(size_t length) {
  std::vector<uint8_t> bytes(length);
  std::iota(bytes.begin(), bytes.end(), uint8_t{1});
  return bytes;
}

TEST(PacketFormat, ComesBackAsItWas) {
  Random random(1, "packets");
  const std::vector<uint8_t> payload = counting(700);
  for (int i = 0; i < 5000; ++i) {
    const nic::Packet packet = test::random_packet(random, payload);
    ASSERT_TRUE(check(packet).ok()) << describe(packet);
    std::vector<uint8_t> bytes;
    encode(packet, bytes);
    ASSERT_EQ(bytes.size(), packet_header_bytes(packet) + packet.payload.length);
    const auto back = decode(bytes);
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(describe(*back), describe(packet));  // names and values of all fields
    EXPECT_TRUE(std::equal(payload.begin(), payload.begin() + static_cast<int64_t>(packet.payload.length),
                           back->payload.bytes));
    std::vector<uint8_t> again;
    encode(*back, again);
    EXPECT_EQ(again, bytes);
  }
}

TEST(PacketFormat, HasItsPlacesForEver) {
  const std::vector<uint8_t> payload = counting(3);
  nic::Packet packet;
  packet.operation = nic::Operation::fetch_atomic;
  packet.source.value = 0x11121314;
  packet.message = 0x2122232425262728;
  packet.message_length = 3;
  packet.fields.match_bits = 0x3132333435363738;
  packet.fields.request.operand[1] = 0x4142434445464748;
  packet.payload = {nic::PayloadRef::Space::local, payload.data(), 3};
  std::vector<uint8_t> bytes;
  encode(packet, bytes);
  ASSERT_EQ(bytes.size(), 49u + 77u + 3u);
  EXPECT_EQ(bytes[0], 4);
  EXPECT_EQ(load_le<uint32_t>(&bytes[1]), packet.source.value);
  EXPECT_EQ(load_le<uint64_t>(&bytes[9]), packet.message);
  EXPECT_EQ(bytes[9], 0x28) << "least significant byte first";
  EXPECT_EQ(load_le<uint64_t>(&bytes[57]), packet.fields.match_bits);
  EXPECT_EQ(load_le<uint64_t>(&bytes[118]), packet.fields.request.operand[1]);
  EXPECT_EQ(bytes[126], 1);
}

TEST(PacketFormat, LaterPacketsCarryNoFields) {
  nic::Packet packet;
  packet.message_length = 10;
  EXPECT_EQ(packet_header_bytes(packet), packet_header_bytes_max());
  packet.offset = 10;
  EXPECT_EQ(packet_header_bytes(packet), 49u);
}

TEST(PacketFormat, WhatIsCutIsAnErrorThatNamesTheField) {
  Random random(2, "packets");
  for (int i = 0; i < 50; ++i) {
    const nic::Packet packet = test::random_packet(random, {});
    std::vector<uint8_t> bytes;
    encode(packet, bytes);
    for (size_t length = 0; length < bytes.size(); ++length) {
      const auto cut = decode({bytes.data(), length});
      ASSERT_FALSE(cut.ok()) << length;
      EXPECT_NE(cut.error().message.find("before its field"), std::string::npos) << cut.error().message;
    }
  }
}

TEST(PacketFormat, ValuesThatDoNotExistAreRefused) {
  const nic::Packet good;
  std::vector<uint8_t> bytes;
  encode(good, bytes);
  ASSERT_TRUE(decode(bytes).ok());
  const struct {
    size_t at;
    uint8_t first_bad;
  } places[] = {{0, 6}, {81, 4}, {90, 13}, {91, 2}, {108, 18}, {109, 14}};
  for (const auto& place : places) {
    std::vector<uint8_t> spoiled = bytes;
    spoiled[place.at] = static_cast<uint8_t>(place.first_bad - 1);
    EXPECT_TRUE(decode(spoiled).ok()) << place.at;
    for (const int value : {int{place.first_bad}, 255}) {
      spoiled[place.at] = static_cast<uint8_t>(value);
      EXPECT_FALSE(decode(spoiled).ok()) << place.at << " = " << value;
    }
  }
}

TEST(PacketFormat, APayloadBeyondItsMessageIsRefused) {
  const std::vector<uint8_t> payload = counting(8);
  nic::Packet packet;
  packet.message_length = 7;
  packet.payload = {nic::PayloadRef::Space::local, payload.data(), 8};
  std::vector<uint8_t> bytes;
  encode(packet, bytes);
  EXPECT_FALSE(decode(bytes).ok());
  packet.offset = UINT64_MAX;
  packet.message_length = UINT64_MAX;
  bytes.clear();
  encode(packet, bytes);
  EXPECT_FALSE(decode(bytes).ok()) << "offset and length wrap";
}

}  // namespace
}  // namespace spinloom::wire
