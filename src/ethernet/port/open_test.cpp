// Texts of ports: an Error for a wrong one says what to write.
#include "ethernet/port/open.hpp"

#include <gtest/gtest.h>

namespace spinloom::port {
namespace {

std::string message_of(const std::string& text) {
  const auto port = open_port(text);
  return port ? "opened" : port.error().message;
}

TEST(Open, WhatIsNoPortIsAnsweredWithAllPorts) {
  for (const char* text :
       {"", "nic0", "pcap", "pcpa:in", "packet:a,b", "pcap:a,b,c", "tap:a,b,c", ":", "record:a", "record:a,b"}) {
    EXPECT_NE(message_of(text).find("xdp:INTERFACE"), std::string::npos) << message_of(text);
  }
}

TEST(Open, NumbersAndNamesAreChecked) {
  for (const char* text : {"replay:a,0", "replay:a,many", "replay:a,-1", "replay:a,3x"}) {
    EXPECT_NE(message_of(text).find("is no number of times"), std::string::npos) << message_of(text);
  }
  for (const char* text : {"packet:", "xdp:a-name-that-is-too-long", "tap:"}) {
    EXPECT_NE(message_of(text).find("1 to 15 letters"), std::string::npos) << message_of(text);
  }
}

TEST(Open, AnInterfaceThatIsNotThereIsAnsweredWithThoseThatAre) {
  for (const char* text : {"packet:none0", "xdp:none0"}) {
    const std::string message = message_of(text);
    EXPECT_NE(message.find("there is no interface 'none0'"), std::string::npos) << message;
    EXPECT_NE(message.find("there are: lo"), std::string::npos) << message;
    EXPECT_NE(message.find("ip link add none0 type veth"), std::string::npos) << message;
  }
}

TEST(Open, AnAddressOfOurOwnBelongsToItsName) {
  EXPECT_EQ(mac_for("tap:a"), mac_for("tap:a"));
  EXPECT_NE(mac_for("tap:a"), mac_for("tap:b"));
  EXPECT_EQ(mac_for("tap:a").bytes[0] & 3, 2);  // one station, locally administered
}

}  // namespace
}  // namespace spinloom::port
