// BridgeTransport - carries packets between ranks that do not reach each other, through ranks that reach both:
// gateways.
//
// Contract: see Transport. It stands above the transports of the ranks that this one reaches directly: link() names
//   them, and their client passes everything that they say to take() and lose_link() (bridge_tap.hpp). Packets leave in
//   pieces, each in a frame (nic/wire/bridge_frame.hpp). A gateway forwards the frames of others
//   (bridge_forwarder.hpp); the engine never sees them.
// Credit: a rank has at most `window_frames` frames and `window_bytes` bytes of each class under way to a far rank,
//   which gives credit back when its NIC has taken their packets. So a gateway needs memory for so much of each pair of
//   ranks and never has to stop a link, whatever one receiver does.
// Invariants: (1) frames of a class are taken in the order of their numbers; (2) answers never wait for requests,
//   neither here nor on the way: a rank that has no room still gives credit for answers; (3) a far rank is lost when
//   the gateway before it says so, or when the way's first rank is lost.
// Threads: the owner of the NIC. Time: the monotonic clock.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "live/bridge/bridge_forwarder.hpp"
#include "live/bridge/bridge_links.hpp"
#include "live/bridge/bridge_options.hpp"
#include "live/bridge/bridge_routes.hpp"
#include "live/node/transport.hpp"
#include "live/node/waiting_send.hpp"
#include "nic/wire/bridge_frame.hpp"

namespace spinloom::live {

struct BridgeCounts {
  uint64_t frames = 0;  // sent by this rank
  uint64_t credits = 0;  // of these, that did nothing but give credit
  uint64_t early = 0;  // came before one that was sent earlier
  uint64_t repeated = 0;
  uint64_t malformed = 0;  // no frame, or not for here
};

class BridgeTransport final : public Transport {
 public:
  // The first `members` ranks have programs; the others only forward.
  BridgeTransport(TransportClient& client, uint32_t rank, uint32_t members, BridgeRoutes routes,
                  const BridgeOptions& options = {});
  ~BridgeTransport() override;

  void link(nic::Rank peer, Transport& transport) { links_.link(peer, transport); }
  // Begins to watch those who forward, or for whom this rank forwards. All links are there.
  void greet();
  // A link has brought a packet; false: it is none of ours.
  [[nodiscard]] bool take(const nic::Packet& packet);
  void lose_link(nic::Rank peer);

  [[nodiscard]] const char* name() const override { return "bridge"; }
  [[nodiscard]] bool send(nic::Send& outbound) override;
  bool poll() override;
  [[nodiscard]] bool has_news() const override { return !cut_.empty() || tells_next(); }
  void taken(nic::Rank, uint64_t) override {}
  void stop(nic::Rank peer, bool stopped) override;
  [[nodiscard]] Status fetch(nic::Rank peer, uint64_t address, uint8_t* to, uint64_t length) override;
  [[nodiscard]] bool congested(nic::Rank peer) const override;
  [[nodiscard]] bool drained() const override;
  [[nodiscard]] Untaken untaken(nic::Rank peer) const override;
  void moved(nic::Rank peer) override;
  [[nodiscard]] std::string describe(nic::Rank peer) override;
  [[nodiscard]] Time timer() const override;
  // Tells all far ranks, and all gateways: those farther away first, which confirm through the nearer ones. has_left()
  // is true when all have confirmed, and send nothing more. A rank without a program has nothing to say: it stays until
  // all have left.
  void say_goodbye() override;
  [[nodiscard]] bool has_left() const { return confirming_.empty() && untold_.empty(); }
  // True if this rank forwards, and some rank that has a program has neither told it of its goodbye nor been lost.
  [[nodiscard]] bool is_needed() const { return forwarder_ && !forwarder_->all_left(); }

  [[nodiscard]] const BridgeCounts& counts() const { return counts_; }
  [[nodiscard]] const BridgeRoutes& routes() const { return routes_; }
  [[nodiscard]] const BridgeForwarder* forwarder() const { return forwarder_.get(); }

 private:
  struct Peer;
  struct Flow;

  [[nodiscard]] Peer* find(nic::Rank rank) const;
  // bridge_transport.cpp: what leaves
  [[nodiscard]] bool has_window(const Flow& flow) const;
  [[nodiscard]] bool transmit(Peer& peer, WaitingSend& one);
  void flush(Peer& peer);
  void say_directly(wire::BridgeKind kind, nic::Rank source, nic::Rank target,
                    const std::array<uint64_t, 2>& numbers = {});
  [[nodiscard]] nic::Rank first_of(const Peer& peer) const;
  void pass(const Peer& peer);
  [[nodiscard]] wire::BridgeHeader header_to(Peer& peer, wire::BridgeKind kind);
  void lose(Peer& peer, bool forwards_still = false);
  void cut(nic::Rank peer);
  [[nodiscard]] size_t distance_of(nic::Rank gateway) const;
  [[nodiscard]] bool tells_next() const { return confirming_.empty() && !untold_.empty(); }
  void tell_next();
  void forget(nic::Rank gone);

  // bridge_receive.cpp: what comes
  void take_frame(nic::Rank hop, std::span<const uint8_t> bytes);
  void take_mine(nic::Rank hop, const wire::BridgeFrame& frame, std::span<const uint8_t> bytes);
  void take_numbered(Peer& peer, const wire::BridgeFrame& frame, std::span<const uint8_t> bytes);
  void take_next(Peer& peer, const wire::BridgeFrame& frame);
  void take_credit(Peer& peer, const wire::BridgeHeader& header);
  void give_credit(Peer& peer);

  TransportClient& client_;
  nic::Rank rank_;
  uint32_t members_;
  BridgeRoutes routes_;
  BridgeOptions options_;
  BridgeLinks links_;
  std::unique_ptr<BridgeForwarder> forwarder_;  // null: this rank forwards nothing
  std::vector<std::unique_ptr<Peer>> peers_;  // by rank; null: it is reached directly, or not at all
  std::vector<nic::Rank> cut_;  // links that are lost; they are told of by the next poll()
  std::vector<nic::Rank> untold_;  // gateways that have not been told of our goodbye, the farthest one last
  std::vector<nic::Rank> confirming_;  // those that have been told and have not confirmed it
  std::vector<uint8_t> frame_;
  Time look_at_ = Time::never();
  size_t waiting_ = 0;  // peers that have something waiting
  BridgeCounts counts_;
};

}  // namespace spinloom::live
