// Reliable::Impl - the state of the reliability stage: for each peer a sending and a receiving side.
//
// Contract: reliable.cpp holds the public calls, reliable_send.cpp what leaves, reliable_receive.cpp what comes.
// Words: a segment is one packet, or a part of one, in a datagram. A segment is reliable if it has the flag SYN: it is
//   acknowledged, and sent again when it is lost. Without SYN it is unreliable. Requests are all packets but answers.
// Invariants: (1) `in_flight` holds reliable segments in order of their sequence, without gaps; between calls its front
//   one is not acknowledged; (2) a message is in `open_messages` from its header on until its last packet has been
//   given and its payloads are free, unless it is one packet whose payload is copied, or an acknowledgement;
//   (3) `received_ahead` holds the segments behind `expected_sequence` that have come, and between calls never
//   `expected_sequence` itself; (4) `outstanding` counts the segments of `in_flight` that are neither acknowledged nor
//   lost, `lost_segments` those that are lost.
// Threads: one owner. Time: an argument.
#pragma once

#include <array>
#include <bit>
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
class SequenceSet {
 public:
  [[nodiscard]] bool contains(uint32_t sequence) const { return (word(sequence) >> (sequence % 64) & 1) != 0; }
  void add(uint32_t sequence) { word(sequence) |= uint64_t{1} << (sequence % 64); }
  void remove(uint32_t sequence) { word(sequence) &= ~(uint64_t{1} << (sequence % 64)); }
  [[nodiscard]] uint32_t size() const {
    uint32_t sequences = 0;
    for (const uint64_t word : words_) sequences += static_cast<uint32_t>(std::popcount(word));
    return sequences;
  }

 private:
  static constexpr uint32_t words = ReliableConfig::window_max / 64;
  [[nodiscard]] uint64_t& word(uint32_t sequence) { return words_[sequence / 64 % words]; }
  [[nodiscard]] const uint64_t& word(uint32_t sequence) const { return words_[sequence / 64 % words]; }
  std::array<uint64_t, words> words_{};
};

struct Segment {
  nic::Packet packet;
  std::vector<uint8_t> copy;  // a copy of the payload, unless is_by_reference
  uint16_t flags = 0;  // slmp::syn, slmp::eom
  uint32_t message_id = 0;
  uint32_t sequence = 0;
  uint64_t ticket = 0;  // the ticket of SendOptions
  bool is_probe = false;  // it has no packet, and only asks the peer for a sign of life
  bool is_by_reference = false;  // the payload lies in the sender's memory and is not copied
  bool acked = false;
  bool lost = false;  // it must be sent again
  uint32_t transmissions = 0;
  uint32_t ordinal = 0;  // the ordinal of the latest transmission
  Time sent_at;  // the time of the latest transmission
};

struct OpenMessage {
  uint32_t id = 0;
  uint32_t unreleased = 0;  // segments of the message that still refer to the sender's memory
  bool has_last_packet = false;  // on_send has been given the last packet of the message
  bool has_ticket = false;  // tickets report that its payloads are free, and message_sent does not
};

struct Peer {
  nic::Rank rank;
  uint32_t epoch = 0;  // the life of the peer's process in which it talks to us
  uint32_t own_epoch = 0;  // the life of this process in which it talks to the peer
  bool lost = false;
  bool quiescent = false;  // lost, and nothing is left of what was under way
  Unacknowledged at_loss;  // unacknowledged packets at the time when the peer was lost
  uint32_t own_resume_count = 0;  // the number of times that our driver has called note_resumed for this peer
  uint32_t peer_resume_count = 0;  // the number of times that the peer's driver has called note_resumed for us

  // Sending.
  std::deque<Segment> waiting_requests;
  std::deque<Segment> waiting_answers;  // answers wait for the sender's own window only, not for the receiver's
  std::deque<Segment> in_flight;
  uint32_t next_sequence = 0;  // counts reliable segments
  uint32_t next_unreliable_sequence = 0;
  uint32_t next_message_id = 0;
  uint32_t next_answer_id = 0;
  uint32_t next_unreliable_message_id = 0;
  uint32_t peer_window_end = 0;  // the receiver takes segments before this one
  uint32_t next_ordinal = 0;
  uint32_t outstanding = 0;
  uint32_t lost_segments = 0;
  uint32_t since_ack_request = 0;  // segments sent since one that asked for an acknowledgement at once
  uint32_t congestion_window = 0;  // segments that may be outstanding
  uint32_t slow_start_threshold = ReliableConfig::window_max;  // the window grows slowly from here on
  uint32_t congestion_credit = 0;  // segments acknowledged since the congestion window last grew
  uint32_t recovery_end = 0;  // losses of segments before this one have been answered for
  bool in_timeout_recovery = false;  // there was a time-out: when `timeout_ordinal` has come, all earlier ones are lost
  uint32_t timeout_ordinal = 0;
  std::unordered_map<uint64_t, OpenMessage> open_messages;  // the key is nic::Packet::message
  // The number of segments that still refer to the payload of a ticket.
  std::unordered_map<uint64_t, uint32_t> ticket_references;
  Time round_trip;  // smoothed; 0: not measured yet
  Time round_trip_variation;
  uint32_t backoff = 0;  // time-outs in a row since the peer was last heard
  Time deadline = Time::never();  // the time when on_deadline() must look after this peer
  Time last_heard;  // the time when its latest datagram came; before that, when the first one went to it
  bool ever_heard = false;  // a datagram of it has come
  bool contacted = false;  // a datagram has come from it or gone to it

  // Receiving.
  uint32_t expected_sequence = 0;  // the sequence number of the next segment in order
  SequenceSet received_ahead;
  uint32_t ahead_end = 0;  // one after the latest segment that has come, if any has come ahead
  uint32_t ahead_count = 0;
  bool has_newest = false;  // `newest_ordinal` and `newest_at` tell of the latest transmission that has come
  uint32_t newest_ordinal = 0;
  Time newest_at;
  uint32_t received_since_ack = 0;  // segments that have come since the last acknowledgement left
  Time ack_at = Time::never();  // the time when an acknowledgement must leave
  bool in_ack_queue = false;
  uint32_t expected_message_id = 0;
  std::unordered_map<uint32_t, std::vector<uint8_t>> early_headers;  // bodies of headers that came early, by message ID
  uint32_t unreliable_end = 0;  // one after the latest unreliable segment
  SequenceSet received_unreliable;
  uint32_t expected_unreliable_message_id = 0;
  uint32_t advertised_window = ReliableConfig::window_max;  // the number of further segments that the peer may send
};

struct Reliable::Impl {
  Impl(nic::Rank self_, const ReliableConfig& config_) : self(self_), config(config_) {}

  nic::Rank self;
  ReliableConfig config;
  std::vector<std::unique_ptr<Peer>> peers;  // one for each rank
  // The order in which they were added, so that a walk has the same results on every machine.
  std::vector<Peer*> peers_in_order;
  ReliableCounts counts;
  Time earliest_deadline = Time::never();  // no deadline of any peer is before it
  std::vector<Peer*> ack_queue;  // peers that wait for an acknowledgement, and some that have got one
  Time earliest_ack = Time::never();  // no `ack_at` is before it

  [[nodiscard]] Peer* find(nic::Rank rank) const;
  void reset_windows(Peer& peer) const;
  [[nodiscard]] static Unacknowledged unacknowledged(const Peer& peer);

  // reliable_invariants.cpp
  static void check_invariants(const Peer& peer);

  // reliable_send.cpp
  [[nodiscard]] Status send(Time now, Peer& peer, const nic::Packet& packet, const SendOptions& options, Output& out);
  void enqueue(Peer& peer, const nic::Packet& fragment, const SendOptions& options, uint32_t message_id,
               bool is_by_reference);
  void pump_queue(Time now, Peer& peer, std::deque<Segment>& queue, Output& out);
  void pump(Time now, Peer& peer, Output& out);
  void retransmit_lost(Time now, Peer& peer, Output& out);
  [[nodiscard]] bool decide_immediate_ack(Peer& peer, const Segment& segment, bool more_wait) const;
  [[nodiscard]] bool may_send(const Peer& peer) const;
  static void keep_copy(Segment& segment, Output& out);
  void transmit(Time now, Peer& peer, Segment& segment, bool ack_at_once, Output& out);
  void send_probe(Time now, Peer& peer, Output& out);
  void release_payload(Peer& peer, const Segment& segment, Output& out);
  void close_message(Peer& peer, uint64_t message, Output& out);
  void on_deadline(Time now, Peer& peer, Output& out);
  void lose(Peer& peer, LostReason reason, Output& out);
  void send_knock(Time now, Peer& peer, Output& out);
  [[nodiscard]] Time timeout_of(const Peer& peer) const;
  void set_deadline(Peer& peer, Time at);
  void update_deadline(Time now, Peer& peer);

  // reliable_receive.cpp
  [[nodiscard]] Status receive(Time now, std::span<const uint8_t> bytes, Output& out);
  [[nodiscard]] static bool is_of_later_life(const Peer& peer, const DatagramHeader& header);
  void begin_later_life(Time now, Peer& peer, const DatagramHeader& header, Output& out);
  [[nodiscard]] Status take_segment(Time now, Peer& peer, const Datagram& datagram, Output& out);
  [[nodiscard]] Status take_unreliable(Peer& peer, const Datagram& datagram, Output& out);
  [[nodiscard]] Result<nic::Packet> decode_packet(const Peer& peer, const Datagram& datagram);
  void take_acknowledgement(Time now, Peer& peer, const Datagram& datagram, Output& out);
  void mark_acknowledged(Peer& peer, Segment& segment);
  void sample_round_trip(Time now, Peer& peer, const DatagramHeader& header);
  void find_losses(Peer& peer, uint32_t echo);
  void shrink_congestion_window(Peer& peer, uint32_t segments);
  void grow_congestion_window(Peer& peer, uint32_t acknowledged, bool was_full);
  void deliver_early_headers(Peer& peer, Output& out);
  void schedule_ack(Peer& peer, Time at);
  static void clear_ack(Peer& peer);
  void send_due_acks(Time due, Time now, Output& out);
  void acknowledge(Time now, Peer& peer, Output& out);
  [[nodiscard]] DatagramHeader make_header(Time now, const Peer& peer) const;
};

}  // namespace spinloom::wire
