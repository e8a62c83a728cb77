// BridgeMeeting - evaluates the cards of a job in which some ranks are gateways.
//
// Contract: needs_bridge() is true if the job has gateways. program_first() is the order in which ranks are numbered:
//   first the ranks with programs, then the ranks that only forward. meet_at_shared_networks() sets address and port in
//   the card of each rank that shares a network with this one to those on that network. The same cards give the same
//   results.
// Invariants: (1) in a job with gateways two ranks reach each other by UDP only if they share a network.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "live/launch/business_card.hpp"

namespace spinloom::live {

[[nodiscard]] bool needs_bridge(const std::vector<BusinessCard>& cards);
[[nodiscard]] std::vector<uint32_t> program_first(const std::vector<BusinessCard>& cards);
[[nodiscard]] uint32_t programs_of(const std::vector<BusinessCard>& cards);
[[nodiscard]] std::vector<bool> gateways_of(const std::vector<BusinessCard>& cards);

// The first network of `other` that both are on; null if there is none.
[[nodiscard]] const BusinessCardNetwork* shared_network(const BusinessCard& mine, const BusinessCard& other);
void meet_at_shared_networks(uint32_t rank, std::vector<BusinessCard>& cards);
// True if the first networks of both cards are the same network. Providers of fabrics over IP use the first network of
// a card, so this network then connects both.
[[nodiscard]] bool share_first_network(const BusinessCard& mine, const BusinessCard& other);

}  // namespace spinloom::live
