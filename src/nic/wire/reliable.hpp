// Reliable - the stage between a NIC and a lossy link: it turns the NIC's packets into datagrams and the link's
// datagrams into packets. It does no input or output itself.
//
// Contract: the driver gives it the engine's packets (on_send), the link's datagrams (on_datagram), and calls
//   on_timer when the time of timer() has come. The driver then does what Output says: transmits datagrams, hands
//   packets to the engine, tells the engine that a buffer is free or that a peer is lost. The protocol is SLMP
//   (FPsPIN, deliverable D4.7, sections 4.4.1 and 4.4.2: a datagram with SYN must be acknowledged, there are three
//   levels of reliability and a window of unacknowledged packets). What SLMP leaves open is decided here:
//   acknowledgements that cover many segments and travel with packets of the other direction, retransmission,
//   duplicates, order, a second window that the receiver sets, lives of a process (epochs), and when a peer counts as
//   lost.
// Acknowledgements: every datagram acknowledges. A datagram that does nothing else leaves when on_timer is called. This
//   is at once if the sender waits (it has sent a part of its window, or the end of a message whose buffer it needs
//   back), if a segment is missing or came twice, and after `acks_after` segments; otherwise after `ack_delay`. So one
//   acknowledgement leaves for all the datagrams that the driver takes in one go. If segments are missing, it lists
//   those that have come.
// Retransmission: each transmission has an ordinal, and acknowledgements name the latest that has come. A segment is
//   lost if one that was sent three transmissions later has come; after a time-out, when its oldest segment has been
//   sent again and that has come, everything sent before is lost. A late acknowledgement repeats nothing.
// Congestion: the segments under way are limited by the room of the peer and by a window that the network has shown to
//   carry. This window grows by one for each segment that is acknowledged until segments are lost, then by one for each
//   window. It falls to three quarters after a window with losses, and to half after each time-out in a row but the
//   first, which may come from a peer that was not running. Lost segments are sent again within the window, too.
// Invariants: (1) with Reliability::segment every packet is delivered exactly once, or the peer is lost; (2) the
//   headers from one rank to another are delivered in the order sent; packets that follow a header, and answers, are
//   delivered in any order, even before headers that were sent earlier; (3) a packet that is larger than a datagram
//   leaves as several smaller packets of the same message; (4) a payload is not read any more once message_sent or
//   released has named it; (5) datagrams that are damaged, of another job or of another life change nothing but a
//   count; (6) a lost peer stays lost until add_peer names its next life, or until both ends say that they have
//   forgotten what was under way (set_quiescent); (7) answers need no room at the receiver: they leave even when it has
//   said that it has none.
// Return: an end that has lost its peer and forgotten what was under way (it is quiescent) knocks every `knock_every`:
//   it sends an acknowledgement from its own next life to the peer's next life. A peer that hears a knock and is
//   quiescent, too, begins its next life, and asks for a sign of life in return. A peer that has not lost this end yet
//   counts it as lost now.
// Threads: one owner. Time: an argument, never read.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "nic/portals/packet.hpp"
#include "nic/wire/siphash.hpp"

namespace spinloom::wire {

// SLMP's levels: none has no SYN at all, message has SYN on the first and the last segment of a message, segment has
// it on every segment. Only segments with SYN are sent again when they are lost, and only messages that have a
// segment with SYN keep their order.
enum class Reliability : uint8_t { none, message, segment };

struct ReliableConfig {
  SipKey secret;  // shared by the processes of the job
  uint32_t epoch = 1;  // the life of this process: grows each time the process starts again
  size_t datagram_bytes = 1472;  // the link's MTU
  uint32_t window = 64;  // segments to a peer that may wait for an acknowledgement; at most window_max
  uint32_t window_first = 16;  // the window at first; losses never make it less than window_min
  uint64_t copy_bytes = 256;  // payloads up to here are copied, so that their buffers are free at once
  Time ack_delay{20'000'000};  // the longest that an acknowledgement waits for a packet that takes it along
  uint32_t acks_after = 32;  // the acknowledgement of this many segments leaves at once
  Time timeout_first{1'000'000'000};  // the time-out until the round trip has been measured
  Time timeout_min{200'000'000};  // more than ack_delay
  Time timeout_max{1'000'000'000'000};
  // A peer is lost at a time-out that follows `timeouts_max` others in a row, if no datagram has come from it for the
  // time `silence`.
  uint32_t timeouts_max = 12;
  Time silence{};
  Time keepalive = Time::never();  // the time that a peer may be silent before this end asks it for a sign of life
  bool peers_may_return = false;  // lost peers may come back
  Time knock_every{500'000'000'000};  // see Return above

  static constexpr uint32_t window_max = 4096;
  static constexpr uint32_t window_min = 4;
};

[[nodiscard]] Status check(const ReliableConfig& config);

struct SendOptions {
  Reliability reliability = Reliability::segment;
  bool copy = false;  // on_send reads the payload before it returns
  uint64_t ticket = 0;  // `released` names it once the payload is free, and message_sent does not, unless 0
};

// The reason why a peer is lost: it was silent, a later life of it has come, or it has lost this end and knocks.
enum class LostReason : uint8_t { silent, restarted, has_lost_us };

struct Output {
  // A datagram: `head_bytes` of `bytes` from `at` on, then `payload`, then the tag, which follows the head in `bytes`.
  struct Transmit {
    nic::Rank to;
    size_t at = 0;  // the place where the datagram begins in `bytes`
    size_t head_bytes = 0;
    std::span<const uint8_t> payload;  // bytes in the sender's memory, in `retained`, or in the stage
  };
  struct Lost {
    nic::Rank peer;
    LostReason reason = LostReason::silent;
    bool ever_heard = false;  // a datagram of it has come at some time
  };
  std::vector<uint8_t> bytes;
  // Transmit these before anything else is done: a payload may be named in `released`, or change in the stage.
  std::vector<Transmit> transmit;
  std::vector<nic::Packet> deliver;  // payloads point into the datagram given or into `retained`
  std::vector<uint64_t> message_sent;  // messages for Nic::on_packet_sent
  std::vector<uint64_t> released;  // tickets (SendOptions) whose payloads are free
  std::vector<Lost> lost;
  std::vector<nic::Rank> returned;  // lost peers that are there again; tell the engine before it gets `deliver`
  std::vector<std::vector<uint8_t>> retained;  // bytes that `transmit` and `deliver` point into

  // The pieces of a datagram, one after the other; the second or the third is empty where two do.
  using Pieces = std::array<std::span<const uint8_t>, 3>;
  [[nodiscard]] Pieces pieces(const Transmit& transmission) const;
  [[nodiscard]] std::vector<uint8_t> datagram(const Transmit& transmission) const;
  void clear();  // keeps the storage
};

struct ReliableCounts {
  uint64_t segments_sent = 0;  // first transmissions
  uint64_t retransmitted = 0;
  uint64_t timeouts = 0;
  uint64_t acknowledgements = 0;  // datagrams of this side that did nothing but acknowledge
  uint64_t delivered = 0;
  uint64_t duplicates = 0;
  uint64_t early_headers = 0;  // headers that waited for an earlier one
  uint64_t foreign = 0;  // datagrams that are damaged, of another job, or to or from a rank that is unknown here
  uint64_t stale = 0;  // datagrams from or to another life of a process
  // Datagrams that our job sealed but that are no packet, lie beyond the window or begin a message twice.
  uint64_t malformed = 0;
  uint64_t from_lost = 0;  // datagrams from peers that are lost
};

// Packets that on_send took for a peer and that are not yet acknowledged; for a lost peer, as they were when it was
// lost.
struct Unacknowledged {
  uint64_t segments = 0;
  uint64_t acks = 0;  // segments that are acknowledgements of the NIC itself
  uint64_t bytes = 0;
  // The number of times that the peer's driver has called note_resumed, as far as the peer has told us.
  uint32_t resume_count = 0;
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

  // Sends one packet of the engine. An Error means that the peer is unknown, that an atomic does not fit into a
  // datagram, or that the message has more than 4 GiB. A payload that is not copied must stay where it is until
  // message_sent or released names it; that also happens for packets to a lost peer.
  [[nodiscard]] Status on_send(Time now, const nic::Packet& packet, const SendOptions& options, Output& out);
  // Takes a datagram that has come. An Error says why it was refused; the counts record the reason, too. Several
  // datagrams may be taken into one Output.
  [[nodiscard]] Status on_datagram(Time now, std::span<const uint8_t> bytes, Output& out);
  void on_timer(Time now, Output& out);
  // When on_timer must be called next, or never. The time may be too early; on_timer then does nothing. Ask again after
  // each call.
  [[nodiscard]] Time timer() const;
  // Sends all acknowledgements that are being delayed: the driver will not look again soon.
  void acknowledge(Time now, Output& out);

  // Sets how many more packets of a peer the driver can take; the peer hears this number as a window. Without this
  // call the window stays as large as it can be. Packets that an earlier window allowed may still come, and answers
  // always come.
  void set_receive_window(Time now, nic::Rank peer, uint32_t segments, Output& out);

  // Says of a lost peer, if peers may come back, whether nothing is left here of what was under way with it. Call it
  // right before each on_datagram() and on_timer(), because a lost peer comes back in these calls.
  void set_quiescent(Time now, nic::Rank peer, bool quiescent);

  // Says that the driver has gone on with packets of this peer that it had kept back. The next datagram that only
  // acknowledges tells the peer.
  void note_resumed(nic::Rank peer);

  [[nodiscard]] const ReliableCounts& counts() const;
  // The number of segments that wait for room in a window.
  [[nodiscard]] uint64_t waiting_segments(nic::Rank peer) const;
  // The number of segments to this peer that may be under way now, by what the network has shown to carry.
  [[nodiscard]] uint32_t congestion_window(nic::Rank peer) const;
  // The work grows with the segments that wait and those in the window.
  [[nodiscard]] Unacknowledged unacknowledged(nic::Rank peer) const;
  // True if nothing waits to be sent or acknowledged and no header waits for an earlier one; lost peers do not count.
  [[nodiscard]] bool idle() const;
  // One line for people: what each peer still waits for.
  [[nodiscard]] std::string describe_waiting() const;
  // Throws InternalError if an invariant is broken. For tests: looks at all segments.
  void check_invariants() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace spinloom::wire
