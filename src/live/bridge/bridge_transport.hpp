// BridgeTransport - carries packets between ranks that do not reach each other, through gateways that reach both.
//
// Contract: see Transport. It works on top of the transports to the ranks that this rank reaches directly. link() sets
//   these transports; their client passes what they report to take() and lose_link() (bridge_tap.hpp). Packets leave
//   in pieces, each in a frame (nic/wire/bridge_frame.hpp). A gateway forwards frames of other ranks
//   (bridge_forwarder.hpp) without its engine.
// Credit: a rank sends a far rank no further frame of a class while `window_frames` frames or `window_bytes` bytes of
//   that class are under way to it. The far rank gives credit back when its NIC has taken the packets. So a gateway
//   needs memory for about one window for each class and pair of ranks, and never stops a link for one slow receiver.
// Invariants: (1) frames of a class are taken in the order of their numbers; (2) answers never wait for requests,
//   neither here nor in gateways: a rank without room still gives credit for answers; (3) a far rank is lost when it
//   has said goodbye, when a gateway on the path to it reports it gone, or when the first rank of the path to it is
//   lost.
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
  uint64_t frames = 0;  // frames sent by this rank
  uint64_t credits = 0;  // frames among these that did nothing but give credit
  uint64_t early = 0;  // frames that arrived before a frame that was sent earlier
  uint64_t repeated = 0;
  // Arrivals that are no frame, or a frame for another rank, off its path, beyond the window, or with a bad packet.
  uint64_t malformed = 0;
};

class BridgeTransport final : public Transport {
 public:
  // The first `program_count` ranks have programs; the others only forward.
  BridgeTransport(TransportClient& client, uint32_t rank, uint32_t program_count, BridgeRoutes routes,
                  const BridgeOptions& options = {});
  ~BridgeTransport() override;

  void link(nic::Rank peer, Transport& transport) { links_.link(peer, transport); }
  // Sends a frame over every link to or from a gateway, so that the links' transports watch the other ends. Call it
  // once all links are set.
  void greet();
  // Takes a packet that a link has delivered. Returns false if it carries no frame of a bridge.
  [[nodiscard]] bool take(const nic::Packet& packet);
  void lose_link(nic::Rank peer);

  [[nodiscard]] const char* name() const override { return "bridge"; }
  [[nodiscard]] bool send(nic::Send& outbound) override;
  bool poll() override;
  [[nodiscard]] bool has_news() const override { return !lost_links_.empty() || can_notify_next(); }
  void return_loan(nic::Rank, uint64_t) override {}
  void set_stopped(nic::Rank peer, bool stopped) override;
  [[nodiscard]] Status fetch(nic::Rank peer, uint64_t address, uint8_t* to, uint64_t length) override;
  [[nodiscard]] bool congested(nic::Rank peer) const override;
  [[nodiscard]] bool drained() const override;
  [[nodiscard]] Outstanding outstanding(nic::Rank peer) const override;
  void note_resumed(nic::Rank peer) override;
  [[nodiscard]] std::string describe(nic::Rank peer) override;
  [[nodiscard]] Time timer() const override;
  // Tells all far ranks that this rank leaves, and then all gateways: the farthest first, because nearer gateways
  // forward their confirmations. has_left() is true once all gateways have confirmed; then they send nothing more. A
  // rank without a program has nothing to say: it stays until all others have left.
  void say_goodbye() override;
  [[nodiscard]] bool has_left() const { return unconfirmed_gateways_.empty() && unnotified_gateways_.empty(); }
  // True if this rank forwards, and some rank with a program has neither told it that it leaves nor been lost.
  [[nodiscard]] bool is_needed() const { return forwarder_ && !forwarder_->all_left(); }

  [[nodiscard]] const BridgeCounts& counts() const { return counts_; }
  [[nodiscard]] const BridgeRoutes& routes() const { return routes_; }
  [[nodiscard]] const BridgeForwarder* forwarder() const { return forwarder_.get(); }

 private:
  struct Peer;
  struct Flow;

  [[nodiscard]] Peer* find(nic::Rank rank) const;
  // bridge_transport.cpp: the sending side
  [[nodiscard]] bool has_window(const Flow& flow) const;
  [[nodiscard]] bool transmit(Peer& peer, WaitingSend& waiting);
  void flush(Peer& peer);
  void send_unnumbered(wire::BridgeKind kind, nic::Rank source, nic::Rank target,
                       const std::array<uint64_t, 2>& numbers = {});
  [[nodiscard]] nic::Rank first_of(const Peer& peer) const;
  void pass(const Peer& peer);
  [[nodiscard]] wire::BridgeHeader header_to(Peer& peer, wire::BridgeKind kind);
  void lose(Peer& peer, bool still_forwards = false);
  void lose_ranks_behind(nic::Rank peer);
  [[nodiscard]] size_t distance_of(nic::Rank gateway) const;
  [[nodiscard]] bool can_notify_next() const { return unconfirmed_gateways_.empty() && !unnotified_gateways_.empty(); }
  void notify_next();
  void forget(nic::Rank gone);

  // bridge_receive.cpp: the receiving side
  void take_frame(nic::Rank hop, std::span<const uint8_t> bytes);
  void take_own(nic::Rank hop, const wire::BridgeFrame& frame, std::span<const uint8_t> bytes);
  void take_numbered(Peer& peer, const wire::BridgeFrame& frame, std::span<const uint8_t> bytes);
  void take_next(Peer& peer, const wire::BridgeFrame& frame);
  void take_credit(Peer& peer, const wire::BridgeHeader& header);
  void give_credit(Peer& peer);

  TransportClient& client_;
  nic::Rank rank_;
  uint32_t program_count_;
  BridgeRoutes routes_;
  BridgeOptions options_;
  BridgeLinks links_;
  std::unique_ptr<BridgeForwarder> forwarder_;  // null if this rank forwards nothing
  std::vector<std::unique_ptr<Peer>> peers_;  // one for each rank; null if the rank is reached directly or not at all
  std::vector<nic::Rank> lost_links_;  // lost links that the next poll() handles
  std::vector<nic::Rank> unnotified_gateways_;  // gateways that we have not told that we leave; the farthest is last
  std::vector<nic::Rank> unconfirmed_gateways_;  // gateways that we have told and that have not confirmed
  std::vector<uint8_t> frame_;
  Time next_credit_at_ = Time::never();
  size_t waiting_ = 0;  // number of peers for which packets wait
  BridgeCounts counts_;
};

}  // namespace spinloom::live
