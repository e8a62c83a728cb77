// The part of LiveProcess for jobs with gateways: the numbering of ranks, the paths between them, and their departure.
#include <algorithm>
#include <tuple>
#include <utility>

#include "live/bridge/bridge_meeting.hpp"
#include "live/fabric/fabric_choice.hpp"
#include "live/node/futex.hpp"
#include "live/process/live_process.hpp"

namespace spinloom::process {
namespace {

constexpr Time confirmed_within{5'000'000'000'000};  // 5 s: the longest wait for a gateway that is silent
constexpr Time until_next_look{20'000'000'000};  // 20 ms

template <class T>
std::vector<T> in_order(std::vector<T> items, const std::vector<uint32_t>& order) {
  std::vector<T> sorted;
  for (const uint32_t from : order) sorted.push_back(std::move(items[from]));
  return sorted;
}

// True for a provider of fabrics that needs an IP network between both ends.
bool is_over_ip(std::string_view provider) {
  return live::cost_of(provider) > live::unknown_cost && provider.substr(0, provider.find(';')) != "shm";
}

}  // namespace

// The texts of all ranks, in our order of ranks.
Result<std::vector<std::string>> LiveProcess::exchange(const std::string& mine) {
  SPL_ASSIGN(auto texts, launcher_->exchange(mine, {.limit_s = settings_.start_s}));
  return launcher_ranks_.empty() ? texts : in_order(std::move(texts), launcher_ranks_);
}

// Processes that only forward have the last numbers, so that programs do not see them.
void LiveProcess::number_ranks() {
  programs_ = live::programs_of(cards_);
  if (!live::needs_bridge(cards_)) return;
  launcher_ranks_ = live::program_first(cards_);
  cards_ = in_order(std::move(cards_), launcher_ranks_);
  rank_ = static_cast<uint32_t>(std::find(launcher_ranks_.begin(), launcher_ranks_.end(), launcher_->rank()) -
                                launcher_ranks_.begin());
  segment_.header().rank = rank_;  // nobody attaches it before all have met again
  live::meet_at_shared_networks(rank_, cards_);
}

// In a job with gateways all ranks publish which ranks they reach directly, so that all know the path between any two.
Status LiveProcess::agree_on_bridge() {
  if (!live::needs_bridge(cards_)) return {};
  live::UnreachedReasons reasons(rank_count());
  for (uint32_t peer = 0; peer < rank_count(); ++peer) reasons[peer] = peer == rank_ ? "" : why_not_directly(peer);
  SPL_ASSIGN(const auto texts, exchange(live::write(reasons)));
  std::vector<std::vector<bool>> marks;
  for (const std::string& text : texts) {
    SPL_ASSIGN(std::vector<bool> unreached, live::read_unreached(text, rank_count()));
    unreached.flip();
    marks.push_back(std::move(unreached));
  }
  routes_ = std::make_unique<live::BridgeRoutes>(marks, live::gateways_of(cards_));
  if (settings_.transport == TransportChoice::shm) return {};  // sends fail where memory is not shared
  return routes_->check(programs_);
}

// Says why this rank does not reach the peer directly; empty if it does. Also strikes fabrics that would need a network
// that the two do not share.
std::string LiveProcess::why_not_directly(uint32_t peer) {
  const live::BusinessCard &mine = cards_[rank_], &other = cards_[peer];
  const bool automatic = settings_.transport == TransportChoice::automatic;
  if ((automatic || settings_.transport == TransportChoice::shm) && why_not_memory(peer).empty()) return {};
  const bool fabric = !no_fabric_.empty() && no_fabric_[peer].empty();
  if (fabric && fabric_port_ && is_over_ip(fabric_port_->provider()) && !live::share_first_network(mine, other)) {
    no_fabric_[peer] = "its first network is another one";
  } else if (fabric && (automatic || settings_.transport == TransportChoice::fabric)) {
    return {};
  }
  if ((automatic || settings_.transport == TransportChoice::udp) && live::shared_network(mine, other) != nullptr)
    return {};
  return "there is no network that both are on";
}

// The bridge stands above all other transports; taps in front of their clients take out its packets.
void LiveProcess::make_bridge() {
  live::BridgeOptions options;
  options.stores = settings_.gateway_stores;
  bridge_ =
      std::make_unique<live::BridgeTransport>(make_client(bridge_trace_, false), rank_, programs_, *routes_, options);
  for (uint32_t peer = 0; peer < rank_count(); ++peer) {
    if (!routes_->direct(rank_, peer)) continue;
    const Route route = route_to(peer);
    live::Transport* const link = route == Route::memory ? static_cast<live::Transport*>(shm_.get())
                                  : route == Route::udp  ? static_cast<live::Transport*>(udp_.get())
                                                         : static_cast<live::Transport*>(fabric_.get());
    bridge_->link(nic::Rank{peer}, *link);
  }
  use_route(Route::bridge, *bridge_, bridge_trace_.get());
  for (const auto& tap : taps_) tap->attach(*bridge_);
  if (udp_ && bridge_->forwarder() != nullptr) udp_->cork_while_delivering();
  bridge_->greet();
}

// Says goodbye over the bridge, and waits a while for the gateways to confirm that. A gateway stays until all ranks
// that have programs have left.
void LiveProcess::leave_bridge() {
  bridge_->say_goodbye();
  for (const Time until = live::monotonic_now() + confirmed_within;
       !bridge_->has_left() && live::monotonic_now() < until;) {
    node_->wait_until(live::monotonic_now() + until_next_look);
  }
  while (bridge_->is_needed()) node_->wait_until(live::monotonic_now() + until_next_look);
  std::ignore = drain();
}

}  // namespace spinloom::process
