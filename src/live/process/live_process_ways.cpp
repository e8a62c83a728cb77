// The part of LiveProcess that finds a way to each peer: by memory, by a fabric, by UDP, and the transports for these
// ways.
#include <algorithm>
#include <mutex>
#include <utility>

#include "base/log.hpp"
#include "live/bridge/bridge_meeting.hpp"
#include "live/process/live_process.hpp"

namespace spinloom::process {
namespace {

bool contains(const std::vector<bool>& list, bool value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

// If some ranks of a machine may not reach each other's memory, each rank publishes whose memory it cannot use, because
// a rank cannot know by itself which ranks cannot use its own.
Status LiveProcess::agree_on_memory() {
  unreached_.resize(rank_count());
  if (!live::must_agree(cards_)) return {};
  unreached_ = live::unreachable_from(rank_, cards_);
  SPL_ASSIGN(const auto texts, exchange(live::write(unreached_)));
  for (uint32_t peer = 0; peer < rank_count(); ++peer) {
    SPL_ASSIGN(const auto cannot_use, live::read_unreached(texts[peer], rank_count()));
    if (cannot_use[rank_] && unreached_[peer].empty()) unreached_[peer] = "it cannot use this process's memory";
  }
  return {};
}

// The ranks ask each other about fabrics only if some are on other machines or ask for a fabric in any case, so that
// jobs on one machine start without that question.
Status LiveProcess::agree_on_fabrics(uint32_t ip_address) {
  if (!live::need_fabrics(cards_)) return {};
  const live::FabricOffer mine = open_fabric(ip_address);
  SPL_ASSIGN(const auto texts, exchange(live::write(mine)));
  no_fabric_.resize(rank_count());
  std::vector<std::string> addresses(rank_count());
  for (uint32_t peer = 0; peer < rank_count(); ++peer) {
    SPL_ASSIGN(const live::FabricOffer offer, live::read_offer(texts[peer]));
    no_fabric_[peer] = live::why_no_fabric(mine, offer);
    if (settings_.transport == TransportChoice::fabric && !no_fabric_[peer].empty() && !live::needs_bridge(cards_)) {
      return fail(Code::environment, "SPINLOOM_TRANSPORT=fabric: rank ", peer, ": ", no_fabric_[peer]);
    }
    if (peer != rank_ && no_fabric_[peer].empty()) addresses[peer] = offer.address;
  }
  if (!fabric_port_) return {};
  return fabric_port_->set_addresses(addresses);
}

live::FabricOffer LiveProcess::open_fabric(uint32_t ip_address) {
  live::FabricOffer offer;
  if (cards_[rank_].fabric == live::FabricNeed::never) {
    offer.trouble = settings_.transport == TransportChoice::automatic ? "SPINLOOM_FABRIC=none"
                    : settings_.transport == TransportChoice::udp     ? "SPINLOOM_TRANSPORT=udp"
                                                                      : "SPINLOOM_TRANSPORT=shm";
    return offer;
  }
  live::FabricWish wish = settings_.fabric;
  if (settings_.transport == TransportChoice::fabric && wish.kind == live::FabricWish::Kind::automatic) {
    wish.kind = live::FabricWish::Kind::named;  // a wish with no name: any provider will do
  }
  auto opened = live::open_fabric(wish, {ip_address, settings_.libfabric});
  if (!opened) {
    offer.trouble = opened.error().message;
    if (settings_.fabric.kind == live::FabricWish::Kind::named) {
      log::emit(log::Level::warning, "live", text("SPINLOOM_FABRIC=", settings_.fabric.provider, ": ", offer.trouble));
    }
    return offer;
  }
  fabric_port_ = std::move(opened.value());
  if (settings_.fabric_faults.any()) {
    live::FabricFaults faults = settings_.fabric_faults;
    faults.seed += rank_;
    fabric_port_ = live::disturb(std::move(fabric_port_), faults);
  }
  offer.provider = fabric_port_->provider();
  offer.address = fabric_port_->address();
  return offer;
}

LiveProcess::Route LiveProcess::route_to(uint32_t peer) const {
  if (routes_ && peer != rank_ && !routes_->direct(rank_, peer)) return Route::bridge;
  if (peer == rank_ || settings_.transport == TransportChoice::shm) return Route::memory;
  if (settings_.transport == TransportChoice::udp) return Route::udp;
  const bool by_fabric = !no_fabric_.empty() && no_fabric_[peer].empty();
  if (settings_.transport == TransportChoice::automatic && why_not_memory(peer).empty()) return Route::memory;
  return by_fabric ? Route::fabric : Route::udp;
}

// The other ranks that are reached in this way.
std::vector<bool> LiveProcess::reached_by(Route route) const {
  std::vector<bool> reached(rank_count());
  for (uint32_t peer = 0; peer < rank_count(); ++peer) reached[peer] = peer != rank_ && route_to(peer) == route;
  return reached;
}

std::string LiveProcess::why_not_memory(uint32_t peer) const {
  if (cards_[peer].machine != cards_[rank_].machine) return "another machine or process namespace";
  return unreached_[peer];
}

live::FabricNeed LiveProcess::fabric_need() const {
  if (settings_.transport == TransportChoice::fabric) return live::FabricNeed::asked;
  const bool never =
      settings_.transport != TransportChoice::automatic || settings_.fabric.kind == live::FabricWish::Kind::none;
  return never ? live::FabricNeed::never : live::FabricNeed::between_machines;
}

// The client of a transport: the node, the recorder in front of it, or the tap that takes out the bridge's packets
// first.
live::TransportClient& LiveProcess::make_client(std::unique_ptr<live::TracingTransport>& trace, bool bridged) {
  live::TransportClient* top = node_.get();
  if (trace_) {
    trace = std::make_unique<live::TracingTransport>(*node_, *trace_);
    top = trace.get();
  }
  return bridged ? *taps_.emplace_back(std::make_unique<live::BridgeTap>(*top)) : *top;
}

// Makes the transports that the routes to the peers need.
Status LiveProcess::make_transports(const live::ShmOptions& memory, std::unique_ptr<live::DatagramPort> port) {
  live::Node& node = *node_;
  live::Progress::Tick tick;
  if (state_) tick = [this] { write_activity(); };
  SPL_ASSIGN(progress_, live::Progress::start(node, [this](uint64_t tag) { on_readable(tag); }, tick));
  const std::lock_guard inside(node.lock());
  node.set_on_work_left([this] { progress_->note_call_end(); });
  if (!settings_.trace.empty()) {
    SPL_ASSIGN(trace_, live::TraceLog::open(text(settings_.trace, ".", rank_)));
  }
  shm_ = std::make_unique<live::ShmTransport>(
      make_client(shm_trace_, routes_ != nullptr), segment_, rank_, cards_, memory,
      [this](int descriptor, nic::Rank peer) { progress_->watch(descriptor, peer.value); });
  update_crowding();
  use_route(Route::memory, *shm_, shm_trace_.get());
  if (rendezvous_) progress_->watch(rendezvous_->descriptor(), meeting_tag());
  const auto arm = [this](uint64_t tag) { return [this, tag](int descriptor) { progress_->watch(descriptor, tag); }; };
  if (const auto peers = reached_by(Route::udp); contains(peers, true)) {
    SPL_ASSIGN(udp_, live::UdpTransport::create(make_client(udp_trace_, routes_ != nullptr), std::move(port), rank_,
                                                cards_, peers, arm(udp_tag()), settings_.rails.size() > 1));
    use_route(Route::udp, *udp_, udp_trace_.get());
    udp_->arm();
  }
  if (const auto peers = reached_by(Route::fabric); contains(peers, true)) {
    fabric_ =
        std::make_unique<live::FabricTransport>(make_client(fabric_trace_, routes_ != nullptr), std::move(fabric_port_),
                                                rank_, cards_[0].nonce, peers, arm(fabric_tag()));
    use_route(Route::fabric, *fabric_, fabric_trace_.get());
    fabric_->arm();
  }
  fabric_port_.reset();
  if (routes_) make_bridge();
  return {};
}

// Packets to all peers of this route go by the transport, or by its recorder in front of it.
void LiveProcess::use_route(Route route, live::Transport& transport, live::TracingTransport* trace) {
  if (trace != nullptr) trace->over(transport);
  live::Transport& top = trace != nullptr ? static_cast<live::Transport&>(*trace) : transport;
  node_->add_transport(top);
  const std::vector<bool> peers = reached_by(route);
  for (uint32_t peer = 0; peer < rank_count(); ++peer) {
    if (peers[peer]) node_->set_route(nic::Rank{peer}, top);
  }
}

std::string LiveProcess::describe(uint32_t peer) {
  const std::lock_guard inside(node_->lock());
  if (peer == rank_) return "itself";
  const nic::Rank rank{peer};
  const Route route = route_to(peer);
  if (route == Route::bridge) return bridge_->describe(rank);
  if (route == Route::memory) return text("shared memory, ", shm_->describe(rank));
  std::string why = why_not_memory(peer);
  if (settings_.transport == TransportChoice::udp) why = "SPINLOOM_TRANSPORT=udp";
  if (settings_.transport == TransportChoice::fabric) why = "SPINLOOM_TRANSPORT=fabric";
  if (route == Route::fabric) return text(fabric_->describe(rank), " (", why, ")");
  const bool asked = settings_.fabric.kind == live::FabricWish::Kind::named;
  if (asked && !no_fabric_.empty()) why += text("; no fabric: ", no_fabric_[peer]);
  return text(udp_->describe(rank), " (", why, ")");
}

}  // namespace spinloom::process
