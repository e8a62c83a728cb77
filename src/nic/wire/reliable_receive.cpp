// Datagrams that come: acknowledgements, duplicates, order.
#include <algorithm>
#include <utility>

#include "nic/wire/reliable_impl.hpp"

namespace spinloom::wire {

// A segment counts as lost when one that was sent this many transmissions later has come (QUIC's packet threshold).
constexpr int32_t reordering_threshold = 3;

// Headers are delivered in the order sent. Answers are not: they overtake headers that wait for room.
static bool is_ordered(const nic::Packet& packet) { return packet.is_header() && !packet.is_answer(); }

Status Reliable::Impl::receive(Time now, std::span<const uint8_t> bytes, Output& out) {
  const auto opened = open_datagram(config.secret, bytes);
  if (!opened) {
    ++counts.foreign;
    return opened.error();
  }
  const DatagramHeader& header = opened->header;
  Peer* peer = find(header.source);
  if (peer == nullptr || header.target != self) {
    ++counts.foreign;
    return fail(Code::invalid, "datagram: from rank ", header.source, " to rank ", header.target, "; this is rank ",
                self, peer == nullptr ? ", which does not know it" : "");
  }
  if (peer->lost && peer->quiescent && is_of_later_life(*peer, header)) begin_later_life(now, *peer, header, out);
  if (peer->lost) {
    ++counts.from_lost;
    return fail(Code::environment, "datagram: from rank ", header.source, ", which is lost");
  }
  if (config.peers_may_return && is_of_later_life(*peer, header)) {
    lose(*peer, LostReason::has_lost_us, out);
    return fail(Code::environment, "datagram: rank ", header.source, " has lost this rank, and would come back");
  }
  if (header.target_epoch == peer->own_epoch && distance(peer->epoch, header.source_epoch) > 0) {
    lose(*peer, LostReason::restarted, out);
    return fail(Code::environment, "datagram: rank ", header.source, " has started again");
  }
  if (header.source_epoch != peer->epoch || header.target_epoch != peer->own_epoch) {
    ++counts.stale;
    return fail(Code::invalid, "datagram: from life ", header.source_epoch, " of rank ", header.source, " to life ",
                header.target_epoch, "; they are ", peer->epoch, " and ", peer->own_epoch);
  }
  peer->last_heard = now;
  peer->ever_heard = true;
  peer->contacted = true;
  peer->backoff = 0;
  take_acknowledgement(now, *peer, *opened, out);
  if ((header.flags & slmp::ack) != 0) return {};
  return (header.flags & slmp::syn) != 0 ? take_segment(now, *peer, *opened, out)
                                         : take_unreliable(*peer, *opened, out);
}

// True if the datagram comes from a later life of both ends. It need not be the next life: one of them may have been in
// lives that the other has not heard of.
bool Reliable::Impl::is_of_later_life(const Peer& peer, const DatagramHeader& header) {
  return distance(peer.epoch, header.source_epoch) > 0 && distance(peer.own_epoch, header.target_epoch) > 0;
}

// The sign of life that it asks for tells the peer, which may not have heard a knock, that this life has begun.
void Reliable::Impl::begin_later_life(Time now, Peer& peer, const DatagramHeader& header, Output& out) {
  Peer next;
  next.rank = peer.rank;
  next.epoch = header.source_epoch;
  next.own_epoch = header.target_epoch;
  next.in_ack_queue = peer.in_ack_queue;
  next.last_heard = now;
  reset_windows(next);
  peer = std::move(next);
  out.returned.push_back(peer.rank);
  send_probe(now, peer, out);
  update_deadline(now, peer);
}

// The packet in a datagram of this peer, checked against the datagram's source, target and offset.
Result<nic::Packet> Reliable::Impl::decode_packet(const Peer& peer, const Datagram& datagram) {
  auto packet = decode(datagram.body);
  if (packet && (packet->source != peer.rank || packet->target != self ||
                 static_cast<uint32_t>(packet->offset) != datagram.header.offset)) {
    packet = fail(Code::invalid, "packet: from rank ", packet->source, " to rank ", packet->target, " at offset ",
                  packet->offset, "; its datagram is from rank ", peer.rank, " at offset ", datagram.header.offset);
  }
  if (!packet) ++counts.malformed;
  return packet;
}

Status Reliable::Impl::take_segment(Time now, Peer& peer, const Datagram& datagram, Output& out) {
  const DatagramHeader& header = datagram.header;
  if (!peer.has_newest || distance(peer.newest_ordinal, header.ordinal) > 0) {
    peer.has_newest = true;
    peer.newest_ordinal = header.ordinal;
    peer.newest_at = now;
  }
  const int32_t ahead = distance(peer.expected_sequence, header.sequence);
  if (ahead < 0 ||
      (ahead < static_cast<int32_t>(ReliableConfig::window_max) && peer.received_ahead.contains(header.sequence))) {
    ++counts.duplicates;
    schedule_ack(peer, now);  // the first acknowledgement may be lost
    return {};
  }
  if (ahead >= static_cast<int32_t>(ReliableConfig::window_max)) {
    ++counts.malformed;
    return fail(Code::invalid, "datagram: segment ", header.sequence, " of rank ", peer.rank,
                " is beyond the window: ", peer.expected_sequence, " is the next, the window ",
                ReliableConfig::window_max);
  }
  const bool is_probe = datagram.body.empty();
  nic::Packet packet;
  if (!is_probe) {
    SPL_ASSIGN(packet, decode_packet(peer, datagram));
    const bool begins_twice = is_ordered(packet) && (distance(peer.expected_message_id, header.message_id) < 0 ||
                                                     peer.early_headers.contains(header.message_id));
    if (begins_twice) {
      ++counts.malformed;
      return fail(Code::invalid, "datagram: message ", header.message_id, " of rank ", peer.rank, " begins twice");
    }
  }
  peer.received_ahead.add(header.sequence);
  const bool had_hole = peer.ahead_count++ > 0;
  if (!had_hole || distance(peer.ahead_end, header.sequence) >= 0) peer.ahead_end = header.sequence + 1;
  while (peer.received_ahead.contains(peer.expected_sequence)) {
    peer.received_ahead.remove(peer.expected_sequence++);
    --peer.ahead_count;
  }
  ++peer.received_since_ack;
  const bool ack_at_once = is_probe || had_hole || peer.ahead_count > 0 ||
                           peer.received_since_ack >= config.acks_after || (header.flags & slmp::now) != 0;
  schedule_ack(peer, ack_at_once ? now : now + config.ack_delay);
  if (is_probe) return {};
  if (is_ordered(packet) && header.message_id != peer.expected_message_id) {
    ++counts.early_headers;
    peer.early_headers.emplace(header.message_id, std::vector<uint8_t>(datagram.body.begin(), datagram.body.end()));
    return {};
  }
  out.deliver.push_back(packet);
  ++counts.delivered;
  if (!is_ordered(packet)) return {};
  ++peer.expected_message_id;
  deliver_early_headers(peer, out);
  return {};
}

void Reliable::Impl::deliver_early_headers(Peer& peer, Output& out) {
  for (auto found = peer.early_headers.find(peer.expected_message_id); found != peer.early_headers.end();
       found = peer.early_headers.find(++peer.expected_message_id)) {
    out.retained.push_back(std::move(found->second));
    peer.early_headers.erase(found);
    auto packet = decode(out.retained.back());
    SPL_ASSERT(packet.ok(), "a held header was a packet when it came");
    out.deliver.push_back(*packet);
    ++counts.delivered;
  }
}

// Takes a segment without SYN, which is never sent again. Drops a segment that comes after a whole window of later
// segments, and a header that comes after a later header.
Status Reliable::Impl::take_unreliable(Peer& peer, const Datagram& datagram, Output& out) {
  const DatagramHeader& header = datagram.header;
  constexpr auto window = static_cast<int32_t>(ReliableConfig::window_max);
  const int32_t behind = distance(header.sequence, peer.unreliable_end);  // 1 for the latest segment
  if (behind > window || (behind > 0 && peer.received_unreliable.contains(header.sequence))) {
    ++counts.duplicates;
    return {};
  }
  SPL_ASSIGN(const nic::Packet packet, decode_packet(peer, datagram));
  if (behind <= -window) {
    peer.received_unreliable = SequenceSet{};
    peer.unreliable_end = header.sequence + 1;
  }
  while (distance(peer.unreliable_end, header.sequence) >= 0) peer.received_unreliable.remove(peer.unreliable_end++);
  peer.received_unreliable.add(header.sequence);
  if (packet.is_header()) {
    // If only the ends of this message had SYN, its first segment would have it. So the message has no SYN at all.
    if (distance(peer.expected_unreliable_message_id, header.message_id) < 0) {
      ++counts.duplicates;
      return {};
    }
    peer.expected_unreliable_message_id = header.message_id + 1;
  }
  out.deliver.push_back(packet);
  ++counts.delivered;
  return {};
}

DatagramHeader Reliable::Impl::make_header(Time now, const Peer& peer) const {
  DatagramHeader header;
  header.source = self;
  header.target = peer.rank;
  header.source_epoch = peer.own_epoch;
  header.target_epoch = peer.epoch;
  header.received = peer.expected_sequence;
  header.window = peer.advertised_window;
  if (peer.has_newest) {
    constexpr int64_t delay_ns_max = UINT32_MAX;
    header.echo = peer.newest_ordinal;
    header.delay_ns = static_cast<uint32_t>(std::clamp<int64_t>((now - peer.newest_at).ps / 1000, 0, delay_ns_max));
  } else {
    header.echo = UINT32_MAX;  // the one before the first
  }
  return header;
}

// ---- acknowledgements that leave ----

void Reliable::Impl::schedule_ack(Peer& peer, Time at) {
  if (!std::exchange(peer.in_ack_queue, true)) ack_queue.push_back(&peer);
  peer.ack_at = std::min(peer.ack_at, at);
  earliest_ack = std::min(earliest_ack, at);
}

void Reliable::Impl::clear_ack(Peer& peer) {
  peer.ack_at = Time::never();
  peer.received_since_ack = 0;
}

// Sends the acknowledgements that must leave by the time `due`.
void Reliable::Impl::send_due_acks(Time due, Time now, Output& out) {
  earliest_ack = Time::never();
  std::erase_if(ack_queue, [&](Peer* peer) {
    if (peer->ack_at != Time::never() && peer->ack_at <= due) acknowledge(now, *peer, out);
    earliest_ack = std::min(earliest_ack, peer->ack_at);
    peer->in_ack_queue = peer->ack_at != Time::never();
    return !peer->in_ack_queue;
  });
}

void Reliable::Impl::acknowledge(Time now, Peer& peer, Output& out) {
  DatagramHeader header = make_header(now, peer);
  header.flags = slmp::ack;
  header.offset = peer.own_resume_count;
  const size_t at = begin_datagram(header, out.bytes);
  if (peer.ahead_count > 0) {
    const uint32_t bits = peer.ahead_end - peer.expected_sequence - 1;
    const size_t body = out.bytes.size();
    out.bytes.resize(body + (bits + 7) / 8);
    for (uint32_t i = 0; i < bits; ++i) {
      if (peer.received_ahead.contains(peer.expected_sequence + 1 + i))
        out.bytes[body + i / 8] |= static_cast<uint8_t>(1u << (i % 8));
    }
  }
  const size_t head_bytes = out.bytes.size() - at;
  seal_datagram(config.secret, at, out.bytes);
  out.transmit.push_back({peer.rank, at, head_bytes, {}});
  ++counts.acknowledgements;
  clear_ack(peer);
}

// ---- acknowledgements that come ----

// Takes what a datagram acknowledges: everything before `received` has come there, and what a list in the body of an
// acknowledgement names; the peer takes `window` segments more.
void Reliable::Impl::take_acknowledgement(Time now, Peer& peer, const Datagram& datagram, Output& out) {
  const DatagramHeader& header = datagram.header;
  const bool is_ack = (header.flags & slmp::ack) != 0;
  if (is_ack && distance(peer.peer_resume_count, header.offset) > 0) peer.peer_resume_count = header.offset;
  if (distance(header.received, peer.next_sequence) < 0) return;  // segments that were never sent
  const uint32_t window_end = header.received + std::min(header.window, ReliableConfig::window_max);
  if (distance(peer.peer_window_end, window_end) > 0) peer.peer_window_end = window_end;
  if (!peer.in_flight.empty()) {
    const bool was_full = !may_send(peer);
    const uint32_t outstanding_before = peer.outstanding;
    sample_round_trip(now, peer, header);
    const bool has_list = is_ack && !datagram.body.empty();
    if (has_list) {
      const int32_t first = distance(peer.in_flight.front().sequence, header.received);
      const size_t bits = std::min<size_t>(datagram.body.size() * 8, ReliableConfig::window_max);
      for (size_t i = 0; i < bits; ++i) {
        if ((datagram.body[i / 8] >> (i % 8) & 1) == 0) continue;
        const int64_t index = int64_t{first} + 1 + static_cast<int64_t>(i);
        if (index >= 0 && index < static_cast<int64_t>(peer.in_flight.size())) {
          mark_acknowledged(peer, peer.in_flight[static_cast<size_t>(index)]);
        }
      }
    }
    bool progress = false;
    while (!peer.in_flight.empty() &&
           (peer.in_flight.front().acked || distance(peer.in_flight.front().sequence, header.received) > 0)) {
      mark_acknowledged(peer, peer.in_flight.front());
      Segment arrived = std::move(peer.in_flight.front());
      peer.in_flight.pop_front();
      keep_copy(arrived, out);
      if (arrived.is_by_reference) release_payload(peer, arrived, out);
      progress = true;
    }
    grow_congestion_window(peer, outstanding_before - peer.outstanding, was_full);
    const bool echo_is_valid = distance(header.echo, peer.next_ordinal) > 0;  // the echoed ordinal was sent
    const bool timeout_echoed =
        peer.in_timeout_recovery && echo_is_valid && distance(peer.timeout_ordinal, header.echo) >= 0;
    if (echo_is_valid && (has_list || timeout_echoed)) find_losses(peer, header.echo);
    if (timeout_echoed) peer.in_timeout_recovery = false;
    if (peer.in_flight.empty()) peer.since_ack_request = 0;
    pump(now, peer, out);
    if (progress) update_deadline(now, peer);
    return;
  }
  pump(now, peer, out);
}

void Reliable::Impl::mark_acknowledged(Peer& peer, Segment& segment) {
  if (std::exchange(segment.acked, true)) return;
  --(std::exchange(segment.lost, false) ? peer.lost_segments : peer.outstanding);
}

// Marks as lost what was sent long before a transmission that has come.
void Reliable::Impl::find_losses(Peer& peer, uint32_t echo) {
  const bool timeout_echoed = peer.in_timeout_recovery && distance(peer.timeout_ordinal, echo) >= 0;
  bool is_new_loss = false;
  for (Segment& segment : peer.in_flight) {
    if (segment.acked || segment.lost) continue;
    const bool overtaken = distance(segment.ordinal, echo) >= reordering_threshold;
    const bool before_timeout = timeout_echoed && distance(segment.ordinal, peer.timeout_ordinal) > 0;
    if (!overtaken && !before_timeout) continue;
    segment.lost = true;
    ++peer.lost_segments;
    --peer.outstanding;
    is_new_loss = is_new_loss || distance(peer.recovery_end, segment.sequence) >= 0;
  }
  if (is_new_loss) shrink_congestion_window(peer, peer.congestion_window - peer.congestion_window / 4);
}

void Reliable::Impl::shrink_congestion_window(Peer& peer, uint32_t segments) {
  peer.congestion_window = std::max(segments, std::min(ReliableConfig::window_min, config.window));
  peer.slow_start_threshold = peer.congestion_window;
  peer.congestion_credit = 0;
  peer.recovery_end = peer.next_sequence;
}

// Lets more segments be under way, if the congestion window was what held them back.
void Reliable::Impl::grow_congestion_window(Peer& peer, uint32_t acknowledged, bool was_full) {
  if (!was_full || acknowledged == 0 || peer.congestion_window >= config.window) return;
  if (peer.congestion_window < peer.slow_start_threshold) {
    peer.congestion_window = std::min(peer.congestion_window + acknowledged, config.window);
    return;
  }
  peer.congestion_credit += acknowledged;
  if (peer.congestion_credit < peer.congestion_window) return;
  peer.congestion_credit -= peer.congestion_window;
  ++peer.congestion_window;
}

// Measures the round trip by the transmission that this datagram echoes, less the time that the peer kept it.
void Reliable::Impl::sample_round_trip(Time now, Peer& peer, const DatagramHeader& header) {
  const int32_t index = distance(peer.in_flight.front().ordinal, header.echo);  // the place, if none was sent again
  if (index < 0 || index >= static_cast<int32_t>(peer.in_flight.size())) return;
  const Segment& echoed = peer.in_flight[static_cast<size_t>(index)];
  if (echoed.ordinal != header.echo || echoed.acked) return;
  const Time measured = std::max(now - echoed.sent_at - Time{int64_t{header.delay_ns} * 1000}, Time{1});
  if (peer.round_trip == Time{0}) {
    peer.round_trip = measured;
    peer.round_trip_variation = Time{measured.ps / 2};
    return;
  }
  const int64_t error_ps = measured.ps - peer.round_trip.ps;
  peer.round_trip_variation += Time{((error_ps < 0 ? -error_ps : error_ps) - peer.round_trip_variation.ps) / 4};
  peer.round_trip = std::max(peer.round_trip + Time{error_ps / 8}, Time{1});
}

}  // namespace spinloom::wire
