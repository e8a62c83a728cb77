// Reliable - the stage between a NIC and a lossy link: it turns the NIC's packets into datagrams and the link's
// datagrams into packets. It does no input or output itself.
//
// Contract: the driver gives it the engine's packets (on_send), the link's datagrams (on_datagram), and calls
//   on_timer when the time of timer() has come. The driver then does what Out says: transmits datagrams, hands
//   packets to the engine, tells the engine that a buffer is free or that a peer is lost. The protocol is SLMP
//   (FPsPIN, deliverable D4.7, sections 4.4.1 and 4.4.2: a datagram with SYN is answered by one with ACK, there are
//   three levels of reliability and a window of unacknowledged packets). What SLMP leaves open is decided here:
//   retransmission (after time-outs that double, and after three later acknowledgements), duplicates, order, a second
//   window that the receiver sets, lives of a process (epochs), and when a peer counts as lost.
// Invariants: (1) with Reliability::segment every packet is delivered exactly once, or the peer is lost; (2) the
//   headers from one rank to another are delivered in the order sent; packets that follow a header, and answers, are
//   delivered in any order, even before headers that were sent earlier; (3) a packet that is larger than a datagram
//   leaves as several smaller packets of the same message; (4) a payload is not read any more once message_sent or
//   released has named it; (5) datagrams that are damaged, of another job or of another life change nothing but a
//   count; (6) a lost peer stays lost until add_peer names its next life; (7) answers need no room at the receiver:
//   they leave even when it has said that it has none.
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

// SLMP's levels: none has no SYN at all, message has SYN on the first and the last segment of a message, segment has
// it on every segment. Only segments with SYN are sent again when they are lost, and only messages that have a
// segment with SYN keep their order.
enum class Reliability : uint8_t { none, message, segment };

struct ReliableConfig {
  SipKey secret;  // shared by the processes of the job
  uint32_t epoch = 1;  // which life of this process: grows each time the process starts again
  size_t datagram_bytes = 1472;  // the link's MTU
  uint32_t window = 64;  // so many segments to a peer may wait for an acknowledgement; at most window_max
  uint64_t copy_bytes = 256;  // payloads up to here are copied, so that their buffers are free at once
  Time timeout_first{1'000'000'000};  // until the round trip has been measured
  Time timeout_min{200'000'000};
  Time timeout_max{1'000'000'000'000};
  uint32_t timeouts_max = 12;  // after so many time-outs in a row without a datagram from it, a peer is lost
  Time keepalive = Time::never();  // how long a peer may be silent before it is asked for a sign of life

  static constexpr uint32_t window_max = 4096;
};

[[nodiscard]] Status check(const ReliableConfig& config);

struct SendOptions {
  Reliability reliability = Reliability::segment;
  bool copy = false;  // on_send reads the payload before it returns
  uint64_t ticket = 0;  // not 0: `released` names it once the payload is free, and message_sent does not
};

enum class LostWhy : uint8_t { silent, restarted };

struct Out {
  struct Transmit {
    nic::Rank to;
    size_t at = 0;  // where the datagram begins in `bytes`
    size_t length = 0;
  };
  struct Lost {
    nic::Rank peer;
    LostWhy why = LostWhy::silent;
  };
  std::vector<uint8_t> bytes;
  std::vector<Transmit> transmit;
  std::vector<nic::Packet> deliver;  // payloads point into the datagram given or into `kept`
  std::vector<uint64_t> message_sent;  // messages for Nic::on_packet_sent
  std::vector<uint64_t> released;  // tickets of SendOptions
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
  uint64_t acknowledgements = 0;  // acknowledgements that this side sent
  uint64_t delivered = 0;
  uint64_t duplicates = 0;
  uint64_t held = 0;  // headers that waited for an earlier one
  uint64_t foreign = 0;  // datagrams that are damaged, of another job, or to or from a rank that is unknown here
  uint64_t stale = 0;  // datagrams from or to another life of a process
  uint64_t malformed = 0;  // datagrams that our job sealed but that are no packet or lie beyond the window
  uint64_t to_lost = 0;  // datagrams from peers that are lost
};

// Packets sent to a peer and not yet acknowledged; for a lost peer, as they were when it was lost.
struct Unacknowledged {
  uint64_t segments = 0;
  uint64_t acks = 0;  // segments that are acknowledgements of the NIC itself
  uint64_t bytes = 0;
  uint32_t moved = 0;  // how often the peer's driver has called note_moved, as far as the peer has told us
  bool lost = false;
};

// The most bytes of an atomic: it must fit into one datagram, and the number is a multiple of every datatype's size.
[[nodiscard]] uint32_t atomic_bytes_max(size_t datagram_bytes);

class Reliable {
 public:
  Reliable(nic::Rank self, const ReliableConfig& config);
  ~Reliable();
  Reliable(const Reliable&) = delete;
  Reliable& operator=(const Reliable&) = delete;

  // Adds a peer that this NIC talks to, and says which life of it. Only a later life replaces one that is known.
  [[nodiscard]] Status add_peer(nic::Rank peer, uint32_t epoch);

  // Sends one packet of the engine. An Error means that the peer is unknown or that an atomic does not fit into a
  // datagram. A payload that is not copied must stay where it is until message_sent or released names it; that also
  // happens for packets to a lost peer.
  [[nodiscard]] Status on_send(Time now, const nic::Packet& packet, const SendOptions& options, Out& out);
  // Takes a datagram that has come. An Error says why it was refused; the counts record the reason, too.
  [[nodiscard]] Status on_datagram(Time now, std::span<const uint8_t> bytes, Out& out);
  void on_timer(Time now, Out& out);
  // When on_timer must be called next, or never. The time may be too early; on_timer then does nothing. Ask again after
  // each call.
  [[nodiscard]] Time timer() const;

  // Sets how many more packets of a peer the driver can take; the peer hears this number as a window. Without this
  // call the window stays as large as it can be. Packets that an earlier window allowed may still come, and answers
  // always come.
  void set_room(nic::Rank peer, uint32_t segments, Out& out);

  // Says that the driver has gone on with packets of this peer that it had kept back. The peer hears of this when it
  // asks for a sign of life.
  void note_moved(nic::Rank peer);

  [[nodiscard]] const ReliableCounts& counts() const;
  // How many segments wait for the window of their receiver.
  [[nodiscard]] uint64_t waiting_segments(nic::Rank peer) const;
  // The work grows with the segments that wait and those in the window.
  [[nodiscard]] Unacknowledged unacknowledged(nic::Rank peer) const;
  // Whether nothing waits to be sent or acknowledged and no header waits for an earlier one.
  [[nodiscard]] bool idle() const;
  [[nodiscard]] std::string waiting() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace spinloom::wire
