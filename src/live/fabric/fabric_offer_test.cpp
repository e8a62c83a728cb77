// The offers of fabrics that ranks exchange, and the provider that they choose.
#include "live/fabric/fabric_offer.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "live/fabric/fabric_choice.hpp"
#include "live/fabric/fabric_faults.hpp"
#include "live/launch/business_card.hpp"
#include "live/launch/launcher.hpp"

namespace spinloom::live {
namespace {

TEST(FabricOffer, ComesBackAsItWas) {
  for (const FabricOffer& offer :
       {FabricOffer{"tcp;ofi_rxm", std::string("\0\x02 -\xff", 5), ""}, FabricOffer{"", "", "some - trouble"}}) {
    const auto back = read_offer(write(offer));
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(*back, offer);
  }
  EXPECT_EQ(*read_offer(write(FabricOffer{})), FabricOffer{});
}

TEST(FabricOffer, TheLongestFitsIntoTheExchange) {
  const std::string longest(1000, 'x');
  EXPECT_LE(write(FabricOffer{longest, longest, longest}).size(), exchange_bytes_max);
  EXPECT_LE(write(FabricOffer{longest, "", longest}).size(), exchange_bytes_max);
}

TEST(FabricOffer, WhatIsNoOfferIsAnError) {
  const std::string good = write(FabricOffer{"tcp", "address", ""});
  for (size_t length = 0; length + 1 < good.size(); ++length) {
    const auto cut = read_offer(good.substr(0, length));
    if (cut.ok()) {
      EXPECT_EQ(write(*cut), good.substr(0, length));
    }
  }
  EXPECT_FALSE(read_offer(good + "-").ok());
  EXPECT_FALSE(read_offer("").ok());
  Random random(3, "offers");
  for (int i = 0; i < 2000; ++i) {
    std::string spoiled = good;
    spoiled[random.below(spoiled.size())] = static_cast<char>(1 + random.below(255));
    const auto read = read_offer(spoiled);
    if (read.ok()) {
      EXPECT_EQ(write(*read), spoiled);
    }
  }
}

TEST(FabricOffer, TwoTalkIfBothHaveTheSameProvider) {
  const FabricOffer tcp{"tcp", "a", ""}, verbs{"verbs", "b", ""}, none{"", "", "no libfabric"};
  EXPECT_EQ(why_no_fabric(tcp, tcp), "");
  EXPECT_NE(why_no_fabric(tcp, verbs), "");
  EXPECT_EQ(why_no_fabric(none, tcp), "no libfabric");
  EXPECT_NE(why_no_fabric(tcp, none).find("no libfabric"), std::string::npos);
}

TEST(FabricChoice, ReadsWhatPeopleWrite) {
  EXPECT_EQ(read_wish("auto")->kind, FabricWish::Kind::automatic);
  EXPECT_EQ(read_wish("none")->kind, FabricWish::Kind::none);
  EXPECT_EQ(read_wish("tcp;ofi_rxm")->provider, "tcp;ofi_rxm");
  EXPECT_EQ(read_wish("verbs:mlx5_0")->provider, "verbs");
  EXPECT_EQ(read_wish("verbs:mlx5_0")->domain, "mlx5_0");
  EXPECT_FALSE(read_wish("").has_value());
  EXPECT_FALSE(read_wish(":eth0").has_value());
  EXPECT_FALSE(read_wish("tcp:").has_value());
}

TEST(FabricChoice, NetworksThatMoveBytesComeFirst) {
  EXPECT_LT(cost_of("cxi"), cost_of("verbs;ofi_rxm"));
  EXPECT_LT(cost_of("verbs;ofi_rxm"), cost_of("tcp;ofi_rxm"));
  EXPECT_LT(cost_of("tcp"), cost_of("sockets"));
  EXPECT_EQ(cost_of("nobody knows"), unknown_cost);
}

TEST(BusinessCard, RanksAskForFabricsOnlyWhereSomebodyMayUseThem) {
  std::vector<BusinessCard> cards(3);
  const auto all_want = [&](FabricNeed need) {
    for (BusinessCard& card : cards) card.fabric = need;
    return need_fabrics(cards);
  };
  EXPECT_FALSE(all_want(FabricNeed::never));
  EXPECT_FALSE(all_want(FabricNeed::between_machines)) << "one machine";
  EXPECT_TRUE(all_want(FabricNeed::asked));
  cards[2].machine = 7;
  EXPECT_TRUE(all_want(FabricNeed::between_machines));
  EXPECT_FALSE(all_want(FabricNeed::never));
}

TEST(FabricFaults, ReadsWhatPeopleWrite) {
  const auto faults = read_fabric_faults("refuse=0.5,delay=1,drop=0.25,corrupt=0,fail=0.125,seed=9");
  ASSERT_TRUE(faults.ok()) << faults.error().message;
  EXPECT_EQ(faults->refuse, 0.5);
  EXPECT_EQ(faults->fail, 0.125);
  EXPECT_EQ(faults->seed, 9u);
  for (const char* wrong : {"drop", "drop=2", "lose=0.1", "delay=x", "refuse=-1"}) {
    EXPECT_FALSE(read_fabric_faults(wrong).ok()) << wrong;
  }
}

}  // namespace
}  // namespace spinloom::live
