#include "live/bridge/bridge_meeting.hpp"

#include <algorithm>

namespace spinloom::live {

bool needs_bridge(const std::vector<Card>& cards) {
  return std::any_of(cards.begin(), cards.end(), [](const Card& card) { return card.gateway != Gateway::no; });
}

std::vector<uint32_t> program_first(const std::vector<Card>& cards) {
  std::vector<uint32_t> order;
  for (const bool alone : {false, true}) {
    for (uint32_t rank = 0; rank < cards.size(); ++rank) {
      if ((cards[rank].gateway == Gateway::alone) == alone) order.push_back(rank);
    }
  }
  return order;
}

uint32_t programs_of(const std::vector<Card>& cards) {
  return static_cast<uint32_t>(
      std::count_if(cards.begin(), cards.end(), [](const Card& card) { return card.gateway != Gateway::alone; }));
}

std::vector<bool> gateways_of(const std::vector<Card>& cards) {
  std::vector<bool> gateways;
  for (const Card& card : cards) gateways.push_back(card.gateway != Gateway::no);
  return gateways;
}

const CardNetwork* shared_network(const Card& mine, const Card& other) {
  for (const CardNetwork& there : other.networks) {
    for (const CardNetwork& here : mine.networks) {
      if (here.network.bits == there.network.bits && here.network.holds(there.network.address)) return &there;
    }
  }
  return nullptr;
}

void meet_at_shared_networks(uint32_t rank, std::vector<Card>& cards) {
  for (Card& card : cards) {
    const CardNetwork* const shared = shared_network(cards[rank], card);
    if (shared == nullptr) continue;
    card.address = shared->network.address;
    card.port = shared->port;
  }
}

bool share_first_network(const Card& mine, const Card& other) {
  if (mine.networks.empty() || other.networks.empty()) return false;
  const UdpNetwork &here = mine.networks.front().network, &there = other.networks.front().network;
  return here.bits == there.bits && here.holds(there.address);
}

}  // namespace spinloom::live
