// Reliable::Impl - the state of the reliability stage: for each peer a sending and a receiving side.
//
// Contract: reliable.cpp holds the public calls, reliable_send.cpp what leaves, reliable_receive.cpp what comes.
// Invariants: (1) `flight` holds the segments with SYN from `first` on, in order of their sequence, its front one not
//   acknowledged; (2) a message is in `messages` from its header on until its last packet has been given and its
//   payloads are free; (3) bit i of `ahead` says that segment expected + i has come; bit 0 is never set between calls.
// Threads: one owner. Time: an argument.
#pragma once

#include <array>
#include <deque>
#include <unordered_map>

#include "wire/datagram.hpp"
#include "wire/packet_format.hpp"
#include "wire/reliable.hpp"

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
  bool probe = false;     // a segment without a packet, which only asks the peer for a sign of life
  bool refers = false;    // the payload lies in the sender's memory and is not copied
  bool acked = false;
  uint32_t sends = 0;
  uint32_t passed = 0;    // how many later segments were acknowledged since this one was sent
  Time sent;
};

struct OpenMessage {
  uint32_t id = 0;
  uint32_t unreleased = 0;  // segments of the message that still refer to the sender's memory
  bool given = false;       // on_send has been given the last packet of the message
  bool ticketed = false;
};

struct Peer {
  nic::Rank rank;
  uint32_t epoch = 0;
  bool lost = false;
  Unacknowledged left;  // unacknowledged packets at the time when the peer was lost
  uint32_t moved = 0;        // how often our driver has called note_moved for this peer
  uint32_t moved_there = 0;  // how often the peer's driver has called note_moved for us

  // Sending.
  std::deque<Segment> waiting;
  std::deque<Segment> answers;  // answers wait for the sender's own window only, not for the receiver's
  std::deque<Segment> flight;
  uint32_t next_sequence = 0;        // of segments with SYN
  uint32_t next_plain_sequence = 0;  // for segments without SYN
  uint32_t next_message = 0;
  uint32_t next_answer = 0;
  uint32_t next_plain_message = 0;
  uint32_t room_end = 0;             // the receiver takes segments before this one
  std::unordered_map<uint64_t, OpenMessage> messages;
  std::unordered_map<uint64_t, uint32_t> tickets;  // by ticket: how many segments still refer to its payload
  Time round_trip;            // smoothed; 0: not measured yet
  Time round_trip_variation;
  uint32_t backoff = 0;       // time-outs in a row since the peer was last heard
  Time deadline = Time::never();
  Time heard;
  bool talked = false;

  // Receiving.
  uint32_t expected = 0;
  Ahead ahead;
  uint32_t expected_message = 0;
  std::unordered_map<uint32_t, std::vector<uint8_t>> held;  // bodies of headers, by message ID
  uint32_t plain_end = 0;  // one after the latest segment without SYN
  Ahead plain;
  uint32_t plain_message = 0;
  uint32_t room = ReliableConfig::window_max;
};

struct Reliable::Impl {
  Impl(nic::Rank self_, const ReliableConfig& config_) : self(self_), config(config_) {}

  nic::Rank self;
  ReliableConfig config;
  std::unordered_map<uint32_t, std::unique_ptr<Peer>> peers;
  std::vector<Peer*> order;  // in the order added, so that a walk has the same results on every machine
  ReliableCounts counts;
  Time earliest = Time::never();  // no deadline of any peer is before it

  [[nodiscard]] Peer* find(nic::Rank rank) const;
  [[nodiscard]] static Unacknowledged unacknowledged(const Peer& peer);

  // reliable_send.cpp
  [[nodiscard]] Status send(Time now, Peer& peer, const nic::Packet& packet, const SendOptions& options, Out& out);
  void enqueue(Peer& peer, const nic::Packet& fragment, const SendOptions& options, uint32_t message_id, bool refers);
  void pump(Time now, Peer& peer, std::deque<Segment>& queue, Out& out);
  void pump(Time now, Peer& peer, Out& out);
  void transmit(Time now, Peer& peer, Segment& segment, Out& out);
  void probe(Time now, Peer& peer, Out& out);
  void release(Peer& peer, const Segment& segment, Out& out);
  void close_message(Peer& peer, uint64_t message, Out& out);
  void timeout(Time now, Peer& peer, Out& out);
  void lose(Peer& peer, LostWhy why, Out& out);
  [[nodiscard]] Time timeout_of(const Peer& peer) const;
  void set_deadline(Peer& peer, Time at);
  void await(Time now, Peer& peer);

  // reliable_receive.cpp
  [[nodiscard]] Status receive(Time now, std::span<const uint8_t> bytes, Out& out);
  [[nodiscard]] Status take_segment(Peer& peer, const Datagram& datagram, Out& out);
  [[nodiscard]] Status take_plain(Peer& peer, const Datagram& datagram, Out& out);
  [[nodiscard]] Result<nic::Packet> packet_of(const Peer& peer, const Datagram& datagram);
  static void take_answer(Peer& peer, const DatagramHeader& header);
  void take_ack(Time now, Peer& peer, const DatagramHeader& header, Out& out);
  void take_received(Time now, Peer& peer, const DatagramHeader& header, Out& out);
  void acknowledged(Time now, Peer& peer, Segment& segment);
  void deliver_held(Peer& peer, Out& out);
  void acknowledge(const Peer& peer, const DatagramHeader& header, Out& out);
  [[nodiscard]] DatagramHeader header_to(const Peer& peer) const;
};

}  // namespace spinloom::wire
