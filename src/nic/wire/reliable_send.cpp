// Datagrams that leave: fragments, windows, retransmission, buffers that become free, and peers that are lost.
#include <algorithm>
#include <utility>

#include "nic/wire/reliable_impl.hpp"

namespace spinloom::wire {

// The offset in SLMP's header has four bytes.
constexpr uint64_t message_bytes_max = uint64_t{1} << 32;

constexpr size_t inline_payload_bytes_max = 512;  // payloads up to here are copied behind their header, others not

uint32_t atomic_bytes_max(size_t datagram_bytes) {
  const size_t headers = datagram_header_bytes + datagram_tag_bytes + packet_header_bytes_max();
  constexpr size_t longest_element = 32;
  const size_t room = datagram_bytes - std::min(datagram_bytes, headers);
  return static_cast<uint32_t>(room - room % longest_element);
}

Status Reliable::Impl::send(Time now, Peer& peer, const nic::Packet& packet, const SendOptions& options, Output& out) {
  if (packet.message_length > message_bytes_max) {
    return fail(Code::overflow, "reliable link: a message of ", packet.message_length, " B, the most is ",
                message_bytes_max, " B (SLMP's offset has 4 bytes)");
  }
  const auto payload_bytes_max = [&](const nic::Packet& part) {
    return config.datagram_bytes - datagram_header_bytes - datagram_tag_bytes - packet_header_bytes(part);
  };
  const bool is_atomic = packet.operation == nic::Operation::atomic || packet.operation == nic::Operation::fetch_atomic;
  if (is_atomic && packet.payload.length > payload_bytes_max(packet)) {
    return fail(Code::invalid, "reliable link: an atomic of ", packet.payload.length, " B; a datagram of ",
                config.datagram_bytes, " B carries ", payload_bytes_max(packet), " B of it (datagram_bytes)");
  }
  const bool is_ack = packet.operation == nic::Operation::ack;  // an ack names a message of the peer, not ours
  const bool is_unreliable = options.reliability == Reliability::none;
  const bool is_by_reference = !options.copy && packet.payload.length > config.copy_bytes;
  const bool is_last = packet.is_last() || packet.missing > 0;
  uint32_t message_id = 0;
  OpenMessage* message = nullptr;
  if (packet.is_header()) {
    message_id = is_unreliable        ? peer.next_unreliable_message_id++
                 : packet.is_answer() ? peer.next_answer_id++
                                      : peer.next_message_id++;
  }
  if (!is_ack && (is_by_reference || !is_last || !packet.is_header())) {
    const auto [found, is_new] = peer.open_messages.try_emplace(packet.message);
    message = &found->second;
    SPL_ASSERT(is_new == packet.is_header(), "message ", packet.message, " at offset ", packet.offset);
    if (is_new) *message = OpenMessage{message_id, 0, false, options.ticket != 0};
    message_id = message->id;
  }
  nic::Packet fragment = packet;
  uint64_t remaining_bytes = packet.payload.length;
  do {
    fragment.payload.length = nic::cut(fragment.offset, remaining_bytes, payload_bytes_max(fragment));
    const bool first_or_last = fragment.is_header() || fragment.is_last() || fragment.missing > 0;
    SendOptions fragment_options = options;
    if (options.reliability == Reliability::message && !first_or_last) {
      fragment_options.reliability = Reliability::none;
    }
    if (is_by_reference && options.ticket != 0) ++peer.ticket_references[options.ticket];
    if (is_by_reference && options.ticket == 0 && message != nullptr) ++message->unreleased;
    enqueue(peer, fragment, fragment_options, message_id, is_by_reference);
    remaining_bytes -= fragment.payload.length;
    fragment.offset += fragment.payload.length;
    fragment.payload.bytes += fragment.payload.length;
  } while (remaining_bytes > 0);
  if (!is_by_reference && options.ticket != 0) out.released.push_back(options.ticket);
  if (message != nullptr && is_last) {
    message->has_last_packet = true;
    close_message(peer, packet.message, out);
  } else if (message == nullptr && !is_ack && options.ticket == 0) {
    out.message_sent.push_back(packet.message);
  }
  pump(now, peer, out);
  return {};
}

void Reliable::Impl::enqueue(Peer& peer, const nic::Packet& fragment, const SendOptions& options, uint32_t message_id,
                             bool is_by_reference) {
  Segment& segment = (fragment.is_answer() ? peer.waiting_answers : peer.waiting_requests).emplace_back();
  segment.packet = fragment;
  segment.message_id = message_id;
  segment.ticket = options.ticket;
  segment.is_by_reference = is_by_reference;
  segment.flags = options.reliability == Reliability::none ? uint16_t{0} : slmp::syn;
  if (fragment.is_last() || fragment.missing > 0) segment.flags |= slmp::eom;
  if (is_by_reference || fragment.payload.length == 0) return;
  segment.copy.assign(fragment.payload.bytes, fragment.payload.bytes + fragment.payload.length);
}

// Transmits as many segments as the windows allow: first what is lost, then answers, then the others.
void Reliable::Impl::pump(Time now, Peer& peer, Output& out) {
  const bool was_idle = peer.in_flight.empty();
  if (peer.lost_segments > 0) retransmit_lost(now, peer, out);
  pump_queue(now, peer, peer.waiting_answers, out);
  pump_queue(now, peer, peer.waiting_requests, out);
  const bool was_keepalive = was_idle && !peer.in_flight.empty();  // the old deadline was for a sign of life
  if (was_keepalive || peer.deadline == Time::never()) update_deadline(now, peer);
}

bool Reliable::Impl::may_send(const Peer& peer) const {
  return peer.outstanding < std::min(peer.congestion_window, config.window) &&
         peer.in_flight.size() < ReliableConfig::window_max;
}

void Reliable::Impl::pump_queue(Time now, Peer& peer, std::deque<Segment>& queue, Output& out) {
  while (!queue.empty()) {
    Segment& next = queue.front();
    if ((next.flags & slmp::syn) == 0) {
      next.sequence = peer.next_unreliable_sequence++;
      transmit(now, peer, next, false, out);
      Segment sent = std::move(next);
      queue.pop_front();
      keep_copy(sent, out);
      if (sent.is_by_reference) release_payload(peer, sent, out);
      continue;
    }
    const bool peer_has_room = next.packet.is_answer() || distance(peer.next_sequence, peer.peer_window_end) > 0;
    if (!peer_has_room || !may_send(peer)) break;
    next.sequence = peer.next_sequence++;
    peer.in_flight.push_back(std::move(next));
    queue.pop_front();
    ++peer.outstanding;
    transmit(now, peer, peer.in_flight.back(), decide_immediate_ack(peer, peer.in_flight.back(), !queue.empty()), out);
  }
}

// Sends lost segments again, the oldest first.
void Reliable::Impl::retransmit_lost(Time now, Peer& peer, Output& out) {
  for (Segment& segment : peer.in_flight) {
    if (peer.lost_segments == 0 || !may_send(peer)) break;
    if (!segment.lost) continue;
    segment.lost = false;
    --peer.lost_segments;
    ++peer.outstanding;
    transmit(now, peer, segment, true, out);
    if (&segment == &peer.in_flight.front()) update_deadline(now, peer);
  }
}

// True if the peer should acknowledge this segment, which is about to be sent, at once: so often that the window never
// runs dry, and whenever a buffer waits for the acknowledgement. Counts the segments since it was last true.
bool Reliable::Impl::decide_immediate_ack(Peer& peer, const Segment& segment, bool more_wait) const {
  const uint32_t window = std::min(peer.congestion_window, config.window);
  const bool quarter_sent = ++peer.since_ack_request >= std::max(window / 4, 1u);
  const bool window_full = more_wait && (!may_send(peer) || peer.next_sequence == peer.peer_window_end);
  const bool buffer_waits = segment.is_by_reference && (segment.flags & slmp::eom) != 0;
  if (!quarter_sent && !window_full && !buffer_waits) return false;
  peer.since_ack_request = 0;
  return true;
}

void Reliable::Impl::transmit(Time now, Peer& peer, Segment& segment, bool ack_at_once, Output& out) {
  DatagramHeader header = make_header(now, peer);
  header.flags = static_cast<uint16_t>(segment.flags | (ack_at_once ? slmp::now : 0));
  header.message_id = segment.message_id;
  header.offset = static_cast<uint32_t>(segment.packet.offset);
  header.sequence = segment.sequence;
  if ((segment.flags & slmp::syn) != 0) header.ordinal = segment.ordinal = peer.next_ordinal++;
  const size_t at = begin_datagram(header, out.bytes);
  std::span<const uint8_t> payload;
  if (!segment.is_probe) {
    nic::Packet& packet = segment.packet;
    if (!segment.is_by_reference) packet.payload.bytes = segment.copy.data();
    if (packet.payload.length <= inline_payload_bytes_max) {
      encode(packet, out.bytes);
    } else {
      encode_header(packet, out.bytes);
      payload = {packet.payload.bytes, packet.payload.length};
    }
  }
  const size_t head_bytes = out.bytes.size() - at;
  seal_datagram(config.secret, at, out.bytes, payload);
  out.transmit.push_back({peer.rank, at, head_bytes, payload});
  ++(segment.transmissions++ == 0 ? counts.segments_sent : counts.retransmitted);
  segment.sent_at = now;
  if (peer.ahead_count == 0) clear_ack(peer);
  if (!peer.contacted) peer.last_heard = now;
  peer.contacted = true;
}

// Keeps the bytes of a segment that goes: a datagram of this Output may refer to them.
void Reliable::Impl::keep_copy(Segment& segment, Output& out) {
  if (segment.copy.size() > inline_payload_bytes_max) out.retained.push_back(std::move(segment.copy));
}

// Sends a segment without a packet (a probe), which the peer acknowledges whatever its window is.
void Reliable::Impl::send_probe(Time now, Peer& peer, Output& out) {
  Segment& segment = peer.in_flight.emplace_back();
  segment.is_probe = true;
  segment.flags = slmp::syn;
  segment.sequence = peer.next_sequence++;
  ++peer.outstanding;
  transmit(now, peer, segment, true, out);
}

// Notes that a segment will not read its payload any more.
void Reliable::Impl::release_payload(Peer& peer, const Segment& segment, Output& out) {
  if (segment.ticket == 0) {
    const auto found = peer.open_messages.find(segment.packet.message);
    SPL_ASSERT(found != peer.open_messages.end() && found->second.unreleased > 0, "message ", segment.packet.message);
    --found->second.unreleased;
    return close_message(peer, segment.packet.message, out);
  }
  const auto found = peer.ticket_references.find(segment.ticket);
  SPL_ASSERT(found != peer.ticket_references.end(), "ticket ", segment.ticket);
  if (--found->second > 0) return;
  peer.ticket_references.erase(found);
  out.released.push_back(segment.ticket);
}

void Reliable::Impl::close_message(Peer& peer, uint64_t message, Output& out) {
  const auto found = peer.open_messages.find(message);
  if (!found->second.has_last_packet || found->second.unreleased > 0) return;
  if (!found->second.has_ticket) out.message_sent.push_back(message);
  peer.open_messages.erase(found);
}

// The smoothed round trip plus four times its variation (RFC 6298) plus what the peer may wait before it acknowledges,
// doubled for each time-out in a row.
Time Reliable::Impl::timeout_of(const Peer& peer) const {
  Time base = config.timeout_first;
  if (peer.round_trip > Time{0}) {
    base = std::clamp(peer.round_trip + peer.round_trip_variation * 4 + config.ack_delay, config.timeout_min,
                      config.timeout_max);
  }
  for (uint32_t i = 0; i < peer.backoff && base < config.timeout_max; ++i) base = base * 2;
  return std::min(base, config.timeout_max);
}

void Reliable::Impl::set_deadline(Peer& peer, Time at) {
  peer.deadline = at;
  earliest_deadline = std::min(earliest_deadline, at);
}

// Sets the deadline for what this peer owes next: an acknowledgement, room for what waits, or a sign of life.
void Reliable::Impl::update_deadline(Time now, Peer& peer) {
  if (peer.lost) {
    peer.deadline = Time::never();
  } else if (!peer.in_flight.empty() || !peer.waiting_requests.empty() || !peer.waiting_answers.empty()) {
    set_deadline(peer, now + timeout_of(peer));
  } else if (peer.contacted && config.keepalive != Time::never()) {
    set_deadline(peer, std::max(now, peer.last_heard) + config.keepalive);
  } else {
    peer.deadline = Time::never();
  }
}

void Reliable::Impl::send_knock(Time now, Peer& peer, Output& out) {
  DatagramHeader header;
  header.flags = slmp::ack;
  header.source = self;
  header.target = peer.rank;
  header.source_epoch = peer.own_epoch + 1;
  header.target_epoch = peer.epoch + 1;
  header.window = config.window;
  header.echo = UINT32_MAX;  // nothing has come in that life
  const size_t at = begin_datagram(header, out.bytes);
  seal_datagram(config.secret, at, out.bytes);
  out.transmit.push_back({peer.rank, at, datagram_header_bytes, {}});
  set_deadline(peer, now + config.knock_every);
}

void Reliable::Impl::on_deadline(Time now, Peer& peer, Output& out) {
  if (peer.lost) {
    peer.deadline = Time::never();
    if (peer.quiescent) send_knock(now, peer, out);
    return;
  }
  if (peer.in_flight.empty()) {
    send_probe(now, peer, out);
    return update_deadline(now, peer);
  }
  ++counts.timeouts;
  if (++peer.backoff > config.timeouts_max && now - peer.last_heard >= config.silence) {
    return lose(peer, LostReason::silent, out);
  }
  // Only the oldest is sent again: the acknowledgement of it tells what else is lost. The first time-out may come from
  // a peer that was not running, so it changes nothing else.
  Segment& oldest = peer.in_flight.front();
  if (oldest.lost) {
    oldest.lost = false;
    --peer.lost_segments;
    ++peer.outstanding;
  }
  transmit(now, peer, oldest, true, out);
  peer.in_timeout_recovery = true;
  peer.timeout_ordinal = oldest.ordinal;
  if (peer.backoff > 1) shrink_congestion_window(peer, peer.congestion_window / 2);
  update_deadline(now, peer);
}

void Reliable::Impl::lose(Peer& peer, LostReason reason, Output& out) {
  peer.at_loss = unacknowledged(peer);
  peer.at_loss.lost = true;
  peer.lost = true;
  for (auto* queue : {&peer.in_flight, &peer.waiting_answers, &peer.waiting_requests}) {
    for (Segment& segment : *queue) {
      keep_copy(segment, out);
      if (segment.is_by_reference) release_payload(peer, segment, out);
    }
    queue->clear();
  }
  peer.outstanding = peer.lost_segments = 0;
  clear_ack(peer);
  peer.open_messages.clear();  // on_send answers further packets of messages that are still open
  peer.early_headers.clear();
  peer.deadline = Time::never();
  out.lost.push_back({peer.rank, reason, peer.ever_heard});
}

}  // namespace spinloom::wire
