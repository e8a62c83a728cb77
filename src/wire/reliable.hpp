// Reliable - the stage between a NIC and a lossy link: packets in, datagrams out, and the other way round. Sans-I/O.
//
// Contract: the driver gives the engine's packets (on_send), the link's datagrams (on_datagram) and the time when
//   timer() has come (on_timer), and does what Out says: transmit datagrams, hand packets to the engine, tell it that a
//   buffer is free, that a peer is lost. The protocol is SLMP (FPsPIN, deliverable D4.7, sections 4.4.1 and 4.4.2: SYN
//   is answered by ACK, three levels of reliability, a window of unacknowledged packets) with what it leaves open:
//   retransmission (time-outs that double, and after three later acknowledgements), duplicates, order, a second window
//   from the receiver, lives (epochs), and the verdict that a peer is lost.
// Invariants: (1) with Reliability::segment every packet is delivered exactly once, or the peer is lost; (2) headers of
//   a pair are delivered in the order sent, what follows them and answers in any order, also before them; (3) a packet
//   larger than a datagram leaves as several smaller packets of the same message; (4) a payload is not read after
//   message_sent or released says so; (5) datagrams of another job, another life, or damaged ones change nothing but a
//   count; (6) a lost peer stays lost until add_peer names its next life; (7) answers need no room at the receiver:
//   they leave also while it has said that it has none.
// Threads: one owner. Time: an argument, never read.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "nic/packet.hpp"
#include "wire/siphash.hpp"

namespace spinloom::wire {

// SLMP's levels: no SYN at all; SYN on the first and the last segment of a message; SYN on every segment. Only segments
// with SYN come again when they are lost, and only messages with some keep their order.
enum class Reliability : uint8_t { none, message, segment };

struct ReliableConfig {
  SipKey secret;  // of the job
  uint32_t epoch = 1;  // this life of this process: grows each time it starts again
  size_t datagram_bytes = 1472;  // the link's MTU
  uint32_t window = 64;  // segments to a peer that are not acknowledged; at most window_max
  uint64_t copy_bytes = 256;  // payloads up to here are copied, so that their buffers are free at once
  Time timeout_first{1'000'000'000};  // until the round trip has been measured
  Time timeout_min{200'000'000};
  Time timeout_max{1'000'000'000'000};
  uint32_t timeouts_max = 12;  // after so many time-outs in a row without a datagram from it, a peer is lost
  Time keepalive = Time::never();  // a peer that has been silent for so long is asked for a sign of life

  static constexpr uint32_t window_max = 4096;
};

[[nodiscard]] Status check(const ReliableConfig& config);

struct SendOptions {
  Reliability reliability = Reliability::segment;
  bool copy = false;  // the payload is read before on_send returns
  uint64_t ticket = 0;  // not 0: `released` names it when this packet's payload is free, and message_sent does not tell
};

enum class LostWhy : uint8_t { silent, restarted };

struct Out {
  struct Transmit {
    nic::Rank to;
    size_t at = 0;  // in `bytes`
    size_t length = 0;
  };
  struct Lost {
    nic::Rank peer;
    LostWhy why = LostWhy::silent;
  };
  std::vector<uint8_t> bytes;
  std::vector<Transmit> transmit;
  std::vector<nic::Packet> deliver;  // payloads point into the datagram given or into `kept`
  std::vector<uint64_t> message_sent;  // Nic::on_packet_sent
  std::vector<uint64_t> released;  // tickets
  std::vector<Lost> lost;
  std::vector<std::vector<uint8_t>> kept;

  [[nodiscard]] std::span<const uint8_t> datagram(const Transmit& one) const {
    return {bytes.data() + one.at, one.length};
  }
  void clear();  // keeps the storage
};

struct ReliableCounts {
  uint64_t segments_sent = 0;  // first transmissions
  uint64_t retransmitted = 0;
  uint64_t timeouts = 0;
  uint64_t acknowledgements = 0;  // sent
  uint64_t delivered = 0;
  uint64_t duplicates = 0;
  uint64_t held = 0;  // headers that waited for an earlier one
  uint64_t foreign = 0;  // datagrams that are damaged, of another job, or to or from a rank that is unknown here
  uint64_t stale = 0;  // datagrams from or to another life of a process
  uint64_t malformed = 0;  // datagrams that our job sealed but that are no packet or lie beyond the window
  uint64_t to_lost = 0;  // datagrams from peers that are lost
};

// What was sent to a peer and is not acknowledged; for a lost peer, as it was when it was lost.
struct Unacknowledged {
  uint64_t segments = 0;
  uint64_t acks = 0;  // those segments that are the NIC's own acknowledgements
  uint64_t bytes = 0;
  uint32_t moved = 0;  // how often the peer's driver has called note_moved, as the peer said when asked last
  bool lost = false;
};

// Of an atomic, which goes in one datagram: whole elements of any datatype.
[[nodiscard]] uint32_t atomic_bytes_max(size_t datagram_bytes);

class Reliable {
 public:
  Reliable(nic::Rank self, const ReliableConfig& config);
  ~Reliable();
  Reliable(const Reliable&) = delete;
  Reliable& operator=(const Reliable&) = delete;

  // Adds a peer that this NIC talks to, and says which life of it. Only a later life replaces one that is known.
  [[nodiscard]] Status add_peer(nic::Rank peer, uint32_t epoch);

  // One packet of the engine. An Error: the peer is unknown, or an atomic does not fit into a datagram. Payloads that
  // are not copied stay where they are until message_sent or released, which come for what is sent to a lost peer, too.
  [[nodiscard]] Status on_send(Time now, const nic::Packet& packet, const SendOptions& options, Out& out);
  // An Error says why the datagram was refused; it has been counted.
  [[nodiscard]] Status on_datagram(Time now, std::span<const uint8_t> bytes, Out& out);
  void on_timer(Time now, Out& out);
  // When on_timer must be called next, or never. The time may be too early; on_timer then does nothing. Ask again after
  // each call.
  [[nodiscard]] Time timer() const;

  // Sets how many packets of a peer the driver can still take; the peer is told so as a window. Without this call all
  // that come are taken. Packets that an earlier window allowed may still come, and answers always do.
  void set_room(nic::Rank peer, uint32_t segments, Out& out);

  // The driver has worked on packets of this peer that it had kept. The peer hears of it when it asks for a sign of
  // life.
  void note_moved(nic::Rank peer);

  [[nodiscard]] const ReliableCounts& counts() const;
  // How many segments wait for the window of their receiver.
  [[nodiscard]] uint64_t waiting_segments(nic::Rank peer) const;
  // Takes time in proportion to the segments that wait and those in the window.
  [[nodiscard]] Unacknowledged unacknowledged(nic::Rank peer) const;
  // Whether nothing waits to be sent or acknowledged and no header waits for an earlier one.
  [[nodiscard]] bool idle() const;
  [[nodiscard]] std::string waiting() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace spinloom::wire
