// UdpTransport - carries packets between processes, usually of several machines, as datagrams under the reliability
// stage (nic/wire/reliable.hpp).
//
// Contract: see Transport. A payload is free when its last datagram has been acknowledged; short payloads are copied.
// Invariants: (1) datagrams that are not of this job change nothing but a count; (2) the client gets the first packet
//   of a message before the others: packets that come early wait here.
// Room: the peers that send now share the socket's room for datagrams that have not been taken. Every peer's window is
//   one share, at least four datagrams, so hardly anything is lost there even if many send to one.
// Return: if peers may come back, a lost one is asked regularly whether it is there, once the client has ended
//   everything that was under way to it. When it answers, both ends begin anew (nic/wire/reliable.hpp).
// Threads: the owner of the NIC. Time: the monotonic clock.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "live/launch/business_card.hpp"
#include "live/node/transport.hpp"
#include "live/udp/datagram_port.hpp"
#include "nic/wire/reliable.hpp"

namespace spinloom::live {

struct UdpPatience {
  Time keepalive{2'000'000'000'000};  // 2 s: after this silence a peer is asked for a sign of life
  Time silence{8'000'000'000'000};    // 8 s: a process that was stopped for less goes on
  uint32_t timeouts = wire::ReliableConfig{}.timeouts_max;  // a peer is lost after this silence and so many time-outs
};

class UdpTransport final : public Transport {
 public:
  // A function that has this process woken once when the descriptor is readable; any thread may then call disarmed().
  using Arm = std::function<void(int descriptor)>;

  // The longest datagram that the interfaces at both ends carry, for all peers that `reached` marks.
  [[nodiscard]] static size_t datagram_bytes(const DatagramPort& port, const std::vector<BusinessCard>& cards,
                                             const std::vector<bool>& reached);

  // `cards` have the peers' addresses. The transport serves the peers that `reached` marks. `returns`: lost peers may
  // come back; it must be the same at all ranks.
  static Result<std::unique_ptr<UdpTransport>> create(TransportClient& client, std::unique_ptr<DatagramPort> port,
                                                      uint32_t rank, const std::vector<BusinessCard>& cards,
                                                      const std::vector<bool>& reached, Arm arm, bool returns = false,
                                                      const UdpPatience& patience = {});

  [[nodiscard]] const char* name() const override { return "udp"; }
  [[nodiscard]] bool send(nic::Send& outbound) override;
  void cork() override { ++corks_; }
  void uncork() override;
  // From now on, packets that this rank sends while it delivers others (because it forwards them) leave together.
  void cork_while_delivering() { corks_deliveries_ = true; }
  bool poll() override;
  [[nodiscard]] bool has_news() const override { return port_->has_datagrams(); }
  void return_loan(nic::Rank, uint64_t) override {}
  void set_stopped(nic::Rank peer, bool stopped) override;
  [[nodiscard]] Status fetch(nic::Rank peer, uint64_t address, uint8_t* to, uint64_t length) override;
  [[nodiscard]] bool congested(nic::Rank peer) const override { return reliable_.waiting_segments(peer) > waiting_max; }
  [[nodiscard]] bool drained() const override { return reliable_.idle(); }
  [[nodiscard]] Outstanding outstanding(nic::Rank peer) const override;
  void note_resumed(nic::Rank peer) override { reliable_.note_resumed(peer); }
  [[nodiscard]] std::string describe(nic::Rank peer) override;
  [[nodiscard]] Time timer() const override { return std::min(reliable_.timer(), next_look_at_lost_); }
  void arm() override;
  void disarmed() { armed_ = false; }
  void say_goodbye() override;
  [[nodiscard]] const DatagramPort& port() const { return *port_; }
  [[nodiscard]] const wire::ReliableCounts& counts() const { return reliable_.counts(); }

 private:
  static constexpr uint64_t waiting_max = 4096;  // a peer for whose window more segments wait is congested

  struct Incoming {  // a message whose packets are coming
    bool begun = false;
    uint64_t bytes = 0;
    std::vector<std::pair<nic::Packet, std::vector<uint8_t>>> early;
  };

  UdpTransport(TransportClient& client, std::unique_ptr<DatagramPort> port, uint32_t rank,
               const std::vector<BusinessCard>& cards, const wire::ReliableConfig& config, Arm arm);
  void warn_lost(const wire::Output::Lost& lost) const;
  void update_disconnected(Time now);
  void perform(wire::Output& out);
  void deliver(wire::Output& out);
  void deliver(const nic::Packet& packet);
  void note_sender(nic::Rank peer);
  void share_room(Time now);
  void set_room(Time now, nic::Rank peer);

  TransportClient& client_;
  std::unique_ptr<DatagramPort> port_;
  const std::vector<BusinessCard>& cards_;
  Arm arm_;
  std::atomic<bool> armed_{false};
  size_t datagram_bytes_;
  wire::Reliable reliable_;
  wire::Output send_out_;
  uint32_t corks_ = 0;
  bool corks_deliveries_ = false;
  wire::Output receive_out_;
  wire::Output window_out_;
  wire::Output acknowledge_out_;  // the output of arm(): acknowledgements before this process sleeps
  struct Sender {
    bool served = false;
    bool stopped = false;
    uint32_t last_turn = 0;  // the latest turn in which it has sent
  };
  std::vector<Sender> senders_;
  bool peers_may_return_ = false;
  std::vector<nic::Rank> lost_peers_;  // lost peers that may come back
  Time next_look_at_lost_ = Time::never();
  uint32_t turn_number_ = 1;
  Time turn_end_;
  uint32_t senders_in_turn_ = 0;  // peers that have sent in this turn
  uint32_t share_count_ = 1;  // number of peers that share the room, rounded up to a power of two
  std::vector<DatagramOut> outgoing_;
  std::vector<SendCompletion> completions_;  // the completion with ticket t is at index t - 1
  std::vector<uint64_t> free_tickets_;
  std::map<std::pair<uint32_t, uint64_t>, Incoming> incoming_;
};

}  // namespace spinloom::live
