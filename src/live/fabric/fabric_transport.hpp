// FabricTransport - carries packets over a fabric that loses nothing (fabric_port.hpp).
//
// Contract: see Transport. A payload of less than 32 KiB is copied into one or more messages. A longer one that need
//   not be read at once is lent: its message names memory that the receiver reads, and the receiver says when it needs
//   it no more. Where the fabric cannot read memory, or that memory cannot be registered, a long payload is copied into
//   messages, too.
// Invariants: (1) every message is an envelope (nic/wire/envelope.hpp): what is not of this job, or has come before,
//   changes nothing but a count; (2) messages are taken in the order of their numbers; one that stays missing means
//   that its sender is lost; (3) at most 256 packets and 2 MiB to a peer are not acknowledged; acknowledgements ride on
//   messages, or follow soon; (4) a peer that is silent is lost, however it became so, and what this process itself
//   slept through is no silence.
// Threads: the owner of the NIC. Time: the monotonic clock.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "live/fabric/fabric_port.hpp"
#include "live/fabric/fabric_reads.hpp"
#include "live/node/segment.hpp"
#include "live/node/transport.hpp"
#include "nic/wire/envelope.hpp"

namespace spinloom::live {

struct FabricPatience {
  Time keepalive{2'000'000'000'000};  // 2 s: after this silence a peer is asked for a sign of life
  Time silence{8'000'000'000'000};  // 8 s: after this silence a peer is lost
  Time gap{2'000'000'000'000};  // 2 s: a message that later ones overtook this long ago is missing
  Time fetch{4'000'000'000'000};  // 4 s: the longest time for a fetch()

  // A rank that waits in fetch() answers nobody, and must not be lost by others for that.
  [[nodiscard]] bool is_consistent() const { return fetch + keepalive < silence; }
};

struct FabricCounts {
  uint64_t messages = 0;  // messages sent
  uint64_t notes = 0;  // notes among these (wire::EnvelopeKind::note)
  uint64_t lent = 0;  // loans among these
  uint64_t foreign = 0;  // messages that came damaged, or not from this job
  uint64_t repeated = 0;  // messages that had come before
  uint64_t malformed = 0;  // messages of this job with a body that makes no sense
};

class FabricTransport final : public Transport {
 public:
  // A function that has this process woken once when the descriptor is readable; any thread may then call disarmed().
  using Arm = std::function<void(int descriptor)>;

  // `secret` is the job's. The transport serves the peers that `reached` marks.
  FabricTransport(TransportClient& client, std::unique_ptr<FabricPort> port, uint32_t rank, const Secret& secret,
                  const std::vector<bool>& reached, Arm arm, const FabricPatience& patience = {});
  ~FabricTransport() override;

  [[nodiscard]] const char* name() const override { return "fabric"; }
  [[nodiscard]] bool send(nic::Send& outbound) override;
  bool poll() override;
  [[nodiscard]] bool has_news() const override { return port_has_events_ || !inbox_.empty() || !failed_.empty(); }
  void arm() override;
  void disarmed() { armed_ = false; }
  void return_loan(nic::Rank peer, uint64_t loan) override;
  void set_stopped(nic::Rank peer, bool stopped) override;
  [[nodiscard]] Status fetch(nic::Rank peer, uint64_t address, uint8_t* to, uint64_t length) override;
  [[nodiscard]] bool fetch_with_help(nic::Rank peer, uint64_t address, uint8_t* to, uint64_t length,
                                     uint64_t token) override;
  [[nodiscard]] bool congested(nic::Rank peer) const override;
  [[nodiscard]] bool drained() const override;
  [[nodiscard]] Outstanding outstanding(nic::Rank peer) const override;
  void note_resumed(nic::Rank peer) override;
  [[nodiscard]] std::string describe(nic::Rank peer) override;
  [[nodiscard]] Time timer() const override;
  void say_goodbye() override;
  [[nodiscard]] const FabricCounts& counts() const { return counts_; }

 private:
  struct Peer;
  struct Waiting;
  struct Message {  // a message that has come and has not been taken
    std::span<const uint8_t> bytes;
    std::vector<uint8_t> copy;  // a copy unless it is empty: the port has its buffer back
  };

  [[nodiscard]] Peer* find(nic::Rank rank) const;
  // fabric_transport.cpp: the sending side
  [[nodiscard]] static bool has_window(const Peer& peer);
  [[nodiscard]] bool transmit(Peer& peer, Waiting& waiting);
  [[nodiscard]] bool transmit_loan(Peer& peer, Waiting& waiting, bool& failed);
  [[nodiscard]] bool transmit_pieces(Peer& peer, Waiting& waiting);
  [[nodiscard]] FabricPort::Slot* open_slot(Peer& peer, wire::EnvelopeKind kind, uint16_t flags);
  [[nodiscard]] bool close_slot(Peer& peer, FabricPort::Slot& slot);
  [[nodiscard]] bool send_note(Peer& peer, uint16_t flags);
  void send_loan_returns(Peer& peer);
  void flush(Peer& peer);
  void flush_all();
  void check_deadlines(Time now);
  void begin_contact(Peer& peer);
  void warn_lost(nic::Rank peer, const std::string& why) const;
  void lose(Peer& peer);

  // fabric_receive.cpp: the receiving side
  // Returns true if a read has ended. `copying`: messages give their buffers back at once.
  bool collect(bool copying);
  void receive(std::span<const uint8_t> bytes);
  void take_early(Peer& peer);
  void discount_sleep(Time slept);
  [[nodiscard]] bool has_failed(nic::Rank peer) const;
  void take(Peer& peer, const wire::Envelope& envelope);
  void take_packet(Peer& peer, std::span<const uint8_t> body);
  void take_loan(Peer& peer, std::span<const uint8_t> body);
  void take_return(Peer& peer, std::span<const uint8_t> body);
  void take_received(Peer& peer, const wire::EnvelopeHeader& header);
  void end_read(const FabricRead& read, bool succeeded);
  [[nodiscard]] bool begin_read(nic::Rank peer, uint64_t address, uint8_t* to, uint64_t length, uint64_t token,
                                bool is_blocking);

  TransportClient& client_;
  std::unique_ptr<FabricPort> port_;
  nic::Rank rank_;
  wire::SipKey secret_;
  Arm arm_;
  FabricPatience patience_;
  std::atomic<bool> armed_{false};
  bool port_has_events_ = false;  // the port would not let us sleep
  std::vector<std::unique_ptr<Peer>> peers_;  // one for each rank; null: not served
  FabricReads reads_;
  std::vector<FabricEvent> events_;
  std::deque<Message> inbox_;
  std::vector<nic::Rank> failed_;  // peers to which something could not be delivered
  Time now_{};
  Time last_event_at_{};  // the latest time at which something happened
  Time next_deadline_ = Time::never();  // the next time at which the clock calls for work
  uint64_t next_fake_address_ = 0;
  std::optional<bool> blocking_result_;  // the result of the read that fetch() waits for
  size_t waiting_ = 0;  // peers that have something waiting
  FabricCounts counts_;
};

}  // namespace spinloom::live
