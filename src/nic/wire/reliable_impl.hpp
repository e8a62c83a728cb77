// Reliable::Impl - the state of the reliability stage: for each peer a sending and a receiving side.
//
// Contract: reliable.cpp holds the public calls, reliable_send.cpp what leaves, reliable_receive.cpp what comes.
// Invariants: (1) `flight` holds segments with SYN in order of their sequence, without gaps; between calls its front
//   one is not acknowledged; (2) a message is in `messages` from its header on until its last packet has been given and
//   its payloads are free, unless it is one packet whose payload is copied, or an acknowledgement; (3) `ahead` holds
//   the segments behind `expected` that have come, and between calls never `expected` itself; (4) `outstanding` counts
//   the segments of `flight` that are neither acknowledged nor lost, `losses` those that are lost.
// Threads: one owner. Time: an argument.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <unordered_map>

#include "nic/wire/datagram.hpp"
#include "nic/wire/packet_format.hpp"
#include "nic/wire/reliable.hpp"

namespace spinloom::wire {

// b - a, negative where `a` is ahead; sequences count modulo 2^32.
[[nodiscard]] inline int32_t distance(uint32_t a, uint32_t b) { return static_cast<int32_t>(b - a); }

// A set of the sequences that have come, no two of which are window_max or more apart.
class Ahead {
 public:
  [[nodiscard]] bool holds(uint32_t sequence) const { return (word(sequence) >> (sequence % 64) & 1) != 0; }
  void add(uint32_t sequence) { word(sequence) |= uint64_t{1} << (sequence % 64); }
  void remove(uint32_t sequence) { word(sequence) &= ~(uint64_t{1} << (sequence % 64)); }

 private:
  static constexpr uint32_t words = ReliableConfig::window_max / 64;
  [[nodiscard]] uint64_t& word(uint32_t sequence) { return words_[sequence / 64 % words]; }
  [[nodiscard]] const uint64_t& word(uint32_t sequence) const { return words_[sequence / 64 % words]; }
  std::array<uint64_t, words> words_{};
};

struct Segment {
  nic::Packet packet;
  std::vector<uint8_t> copy;  // a copy of the payload
  uint16_t flags = 0;
  uint32_t message_id = 0;
  uint32_t sequence = 0;
  uint64_t ticket = 0;
  bool probe = false;  // a segment without a packet, which only asks the peer for a sign of life
  bool refers = false;  // the payload lies in the sender's memory and is not copied
  bool acked = false;
  bool lost = false;  // to be sent again
  uint32_t sends = 0;
  uint32_t ordinal = 0;  // of the latest transmission
  Time sent;
};

struct OpenMessage {
  uint32_t id = 0;
  uint32_t unreleased = 0;  // segments of the message that still refer to the sender's memory
  bool given = false;  // on_send has been given the last packet of the message
  bool ticketed = false;
};

struct Peer {
  nic::Rank rank;
  uint32_t epoch = 0;  // the life of the peer's process in which it talks to us
  uint32_t own_epoch = 0;  // the life of this process in which it talks to the peer
  bool lost = false;
  bool parted = false;  // lost, and nothing is left of what was under way
  Unacknowledged left;  // unacknowledged packets at the time when the peer was lost
  uint32_t moved = 0;  // how often our driver has called note_moved for this peer
  uint32_t moved_there = 0;  // how often the peer's driver has called note_moved for us

  // Sending.
  std::deque<Segment> waiting;
  std::deque<Segment> answers;  // answers wait for the sender's own window only, not for the receiver's
  std::deque<Segment> flight;
  uint32_t next_sequence = 0;  // of segments with SYN
  uint32_t next_plain_sequence = 0;  // for segments without SYN
  uint32_t next_message = 0;
  uint32_t next_answer = 0;
  uint32_t next_plain_message = 0;
  uint32_t room_end = 0;  // the receiver takes segments before this one
  uint32_t next_ordinal = 0;
  uint32_t outstanding = 0;
  uint32_t losses = 0;
  uint32_t since_asked = 0;  // segments sent since one that asked for an acknowledgement at once
  uint32_t congestion_window = 0;  // segments that may be outstanding
  uint32_t slow_start_threshold = ReliableConfig::window_max;  // from here on the window grows slowly
  uint32_t congestion_credit = 0;  // segments acknowledged since it last grew
  uint32_t recovery_end = 0;  // losses of segments before this one have been answered for
  bool probing = false;  // after a time-out: when `probe_ordinal` has come, all earlier ones are lost
  uint32_t probe_ordinal = 0;
  std::unordered_map<uint64_t, OpenMessage> messages;
  std::unordered_map<uint64_t, uint32_t> tickets;  // by ticket: how many segments still refer to its payload
  Time round_trip;  // smoothed; 0: not measured yet
  Time round_trip_variation;
  uint32_t backoff = 0;  // time-outs in a row since the peer was last heard
  Time deadline = Time::never();
  Time heard;  // when its latest datagram came; before that, when the first one went to it
  bool answered = false;  // a datagram of it has come
  bool talked = false;  // a datagram has come from it or gone to it

  // Receiving.
  uint32_t expected = 0;  // the sequence number of the next segment in order
  Ahead ahead;
  uint32_t ahead_end = 0;  // one after the latest segment that has come, if any has come ahead
  uint32_t ahead_count = 0;
  bool has_newest = false;
  uint32_t newest_ordinal = 0;
  Time newest_at;
  uint32_t owed = 0;  // segments that have come since the last acknowledgement left
  Time ack_at = Time::never();  // when an acknowledgement must leave
  bool listed = false;  // in `owing`
  uint32_t expected_message = 0;
  std::unordered_map<uint32_t, std::vector<uint8_t>> held;  // by message ID: bodies of header packets that came early
  uint32_t plain_end = 0;  // one after the latest segment without SYN
  Ahead plain;
  uint32_t plain_message = 0;
  uint32_t room = ReliableConfig::window_max;
};

struct Reliable::Impl {
  Impl(nic::Rank self_, const ReliableConfig& config_) : self(self_), config(config_) {}

  nic::Rank self;
  ReliableConfig config;
  std::vector<std::unique_ptr<Peer>> peers;  // by rank
  std::vector<Peer*> order;  // in the order added, so that a walk has the same results on every machine
  ReliableCounts counts;
  Time earliest = Time::never();  // no deadline of any peer is before it
  std::vector<Peer*> owing;  // those that wait for an acknowledgement, and some that have got one
  Time earliest_ack = Time::never();  // no `ack_at` is before it

  [[nodiscard]] Peer* find(nic::Rank rank) const;
  void begin_life(Peer& peer) const;
  [[nodiscard]] static Unacknowledged unacknowledged(const Peer& peer);

  // reliable_send.cpp
  [[nodiscard]] Status send(Time now, Peer& peer, const nic::Packet& packet, const SendOptions& options, Out& out);
  void enqueue(Peer& peer, const nic::Packet& fragment, const SendOptions& options, uint32_t message_id, bool refers);
  void pump(Time now, Peer& peer, std::deque<Segment>& queue, Out& out);
  void pump(Time now, Peer& peer, Out& out);
  void repeat(Time now, Peer& peer, Out& out);
  [[nodiscard]] bool asks(Peer& peer, const Segment& segment, bool more) const;
  [[nodiscard]] bool may_send(const Peer& peer) const;
  static void retire(Segment& segment, Out& out);
  void transmit(Time now, Peer& peer, Segment& segment, bool at_once, Out& out);
  void probe(Time now, Peer& peer, Out& out);
  void release(Peer& peer, const Segment& segment, Out& out);
  void close_message(Peer& peer, uint64_t message, Out& out);
  void timeout(Time now, Peer& peer, Out& out);
  void lose(Peer& peer, LostWhy why, Out& out);
  void knock(Time now, Peer& peer, Out& out);
  [[nodiscard]] Time timeout_of(const Peer& peer) const;
  void set_deadline(Peer& peer, Time at);
  void await(Time now, Peer& peer);

  // reliable_receive.cpp
  [[nodiscard]] Status receive(Time now, std::span<const uint8_t> bytes, Out& out);
  [[nodiscard]] static bool is_of_later_life(const Peer& peer, const DatagramHeader& header);
  void begin_later_life(Time now, Peer& peer, const DatagramHeader& header, Out& out);
  [[nodiscard]] Status take_segment(Time now, Peer& peer, const Datagram& datagram, Out& out);
  [[nodiscard]] Status take_plain(Peer& peer, const Datagram& datagram, Out& out);
  [[nodiscard]] Result<nic::Packet> packet_of(const Peer& peer, const Datagram& datagram);
  void take_received(Time now, Peer& peer, const Datagram& datagram, Out& out);
  void acknowledged(Peer& peer, Segment& segment);
  void sample(Time now, Peer& peer, const DatagramHeader& header);
  void find_losses(Peer& peer, uint32_t echo);
  void shrink(Peer& peer, uint32_t congestion_window);
  void grow(Peer& peer, uint32_t segments, bool was_full);
  void deliver_held(Peer& peer, Out& out);
  void owe(Peer& peer, Time at);
  static void paid(Peer& peer);
  void pay(Time due, Time now, Out& out);
  void acknowledge(Time now, Peer& peer, Out& out);
  [[nodiscard]] DatagramHeader header_to(Time now, const Peer& peer) const;
};

}  // namespace spinloom::wire
