#include "live/bridge/bridge_meeting.hpp"

#include <algorithm>

namespace spinloom::live {

bool needs_bridge(const std::vector<BusinessCard>& cards) {
  return std::any_of(cards.begin(), cards.end(), [](const BusinessCard& card) { return card.gateway != Gateway::no; });
}

std::vector<uint32_t> program_first(const std::vector<BusinessCard>& cards) {
  std::vector<uint32_t> order;
  for (const bool alone : {false, true}) {
    for (uint32_t rank = 0; rank < cards.size(); ++rank) {
      if ((cards[rank].gateway == Gateway::alone) == alone) order.push_back(rank);
    }
  }
  return order;
}

uint32_t programs_of(const std::vector<BusinessCard>& cards) {
  return static_cast<uint32_t>(std::count_if(cards.begin(), cards.end(),
                                             [](const BusinessCard& card) { return card.gateway != Gateway::alone; }));
}

std::vector<bool> gateways_of(const std::vector<BusinessCard>& cards) {
  std::vector<bool> gateways;
  for (const BusinessCard& card : cards) gateways.push_back(card.gateway != Gateway::no);
  return gateways;
}

const BusinessCardNetwork* shared_network(const BusinessCard& mine, const BusinessCard& other) {
  for (const BusinessCardNetwork& there : other.networks) {
    for (const BusinessCardNetwork& here : mine.networks) {
      if (here.network.bits == there.network.bits && here.network.holds(there.network.address)) return &there;
    }
  }
  return nullptr;
}

void meet_at_shared_networks(uint32_t rank, std::vector<BusinessCard>& cards) {
  for (BusinessCard& card : cards) {
    const BusinessCardNetwork* const shared = shared_network(cards[rank], card);
    if (shared == nullptr) continue;
    card.address = shared->network.address;
    card.port = shared->port;
  }
}

bool share_first_network(const BusinessCard& mine, const BusinessCard& other) {
  if (mine.networks.empty() || other.networks.empty()) return false;
  const UdpNetwork &here = mine.networks.front().network, &there = other.networks.front().network;
  return here.bits == there.bits && here.holds(there.address);
}

}  // namespace spinloom::live
