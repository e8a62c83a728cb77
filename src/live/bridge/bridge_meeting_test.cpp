// Cards of a job with gateways: the numbering of the ranks, and the networks that two ranks share.
#include "live/bridge/bridge_meeting.hpp"

#include <gtest/gtest.h>

namespace spinloom::live {
namespace {

BusinessCard card_on(std::vector<BusinessCardNetwork> networks, Gateway gateway = Gateway::no) {
  BusinessCard card;
  card.networks = std::move(networks);
  if (!card.networks.empty()) card.address = card.networks.front().network.address;
  if (!card.networks.empty()) card.port = card.networks.front().port;
  card.gateway = gateway;
  return card;
}

constexpr uint32_t first_net = 0x0a010000, second_net = 0x0a020000;

TEST(BridgeMeeting, RanksWithProgramsComeFirst) {
  const std::vector<BusinessCard> cards{card_on({}, Gateway::alone), card_on({}), card_on({}, Gateway::beside),
                                        card_on({}, Gateway::alone), card_on({})};
  EXPECT_TRUE(needs_bridge(cards));
  EXPECT_FALSE(needs_bridge({card_on({}), card_on({})}));
  EXPECT_EQ(program_first(cards), (std::vector<uint32_t>{1, 2, 4, 0, 3}));
  EXPECT_EQ(programs_of(cards), 3u);
  EXPECT_EQ(gateways_of(cards), (std::vector<bool>{true, false, true, true, false}));
}

TEST(BridgeMeeting, PeersAreMetOnTheNetworkThatBothAreOn) {
  std::vector<BusinessCard> cards{
      card_on({{{second_net + 1, 16}, 100}, {{first_net + 1, 16}, 200}}), card_on({{{first_net + 2, 16}, 300}}),
      card_on({{{first_net + 3, 24}, 400}, {{second_net + 3, 16}, 500}}), card_on({{{0x0a030003, 16}, 600}})};
  ASSERT_NE(shared_network(cards[0], cards[1]), nullptr);
  EXPECT_EQ(shared_network(cards[0], cards[1])->port, 300);
  EXPECT_EQ(shared_network(cards[1], cards[2]), nullptr);  // one card has a network of 16 bits, the other of 24
  EXPECT_EQ(shared_network(cards[0], cards[3]), nullptr);
  EXPECT_FALSE(share_first_network(cards[0], cards[1]));
  EXPECT_TRUE(share_first_network(cards[1], cards[1]));
  meet_at_shared_networks(0, cards);
  EXPECT_EQ(cards[1].address, first_net + 2);
  EXPECT_EQ(cards[2].address, second_net + 3);
  EXPECT_EQ(cards[2].port, 500);
  EXPECT_EQ(cards[3].address, 0x0a030003u);
}

}  // namespace
}  // namespace spinloom::live
