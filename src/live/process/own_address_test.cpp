// Addresses and networks as users write them. 127.0.0.0/8 is a network on which every machine has an address.
#include "live/process/own_address.hpp"

#include <gtest/gtest.h>

namespace spinloom::process {
namespace {

TEST(OwnAddressTest, AnAddressIsTakenAsItIs) {
  EXPECT_EQ(own_address("10.1.2.3"), 0x0a010203u);
  EXPECT_EQ(own_address("127.0.0.1"), 0x7f000001u);
}

TEST(OwnAddressTest, ANetworkIsThisMachinesAddressThere) {
  for (const char* const loopback : {"127.0.0.0/8", "127.9.9.9/8", "127.0.0.1/32"}) {
    EXPECT_EQ(own_address(loopback), 0x7f000001u) << loopback;
  }
}

TEST(OwnAddressTest, ANetworkWithoutThisMachineIsItsOwnAddress) {
  EXPECT_EQ(own_address("203.0.113.77/24"), 0xcb007100u);  // RFC 5737 reserves it for documentation
}

TEST(OwnAddressTest, OtherTextsAreNothing) {
  for (const char* const text : {"", "localhost", "10.1.2", "10.1.2.3/", "10.1.2.3/0", "10.1.2.3/33", "10.1.2.3/-8",
                                 "10.1.2.3/8x", "/8", "10.1.2.3/8/8", "::1"}) {
    EXPECT_FALSE(own_address(text)) << text;
  }
}

TEST(OwnNetworksTest, AreThoseWhereThisMachineIs) {
  using Networks = std::vector<live::UdpNetwork>;
  EXPECT_EQ(own_networks("203.0.113.77/24,127.0.0.0/8"), (Networks{{0x7f000001, 8}}));
  EXPECT_EQ(own_networks("127.9.9.9/8,10.1.2.3"), (Networks{{0x7f000001, 8}, {0x0a010203, 0}}));
  EXPECT_EQ(own_networks("203.0.113.77/24,198.51.100.1/25"), (Networks{{0xcb007100, 24}, {0xc6336400, 25}}));
  // The last text has more than BusinessCard::networks_max addresses.
  for (const char* const text : {"", ",", "10.1.2.3,", ",10.1.2.3", "10.1.2.3;10.1.2.4", "10.1.2.3/8,x",
                                 "1.1.1.1,2.1.1.1,3.1.1.1,4.1.1.1,5.1.1.1,6.1.1.1,7.1.1.1,8.1.1.1,9.1.1.1"}) {
    EXPECT_FALSE(own_networks(text)) << text;
  }
}

}  // namespace
}  // namespace spinloom::process
