// Datagrams that leave: fragments, windows, retransmission, buffers that become free, and peers that are lost.
#include <algorithm>
#include <utility>

#include "nic/wire/reliable_impl.hpp"

namespace spinloom::wire {

// The offset in SLMP's header has four bytes.
constexpr uint64_t message_bytes_max = uint64_t{1} << 32;

constexpr size_t together_most = 512;  // shorter payloads are copied behind their header, others not

uint32_t atomic_bytes_max(size_t datagram_bytes) {
  const size_t headers = datagram_header_bytes + datagram_tag_bytes + packet_header_bytes_max();
  constexpr size_t longest_element = 32;
  const size_t room = datagram_bytes - std::min(datagram_bytes, headers);
  return static_cast<uint32_t>(room - room % longest_element);
}

Status Reliable::Impl::send(Time now, Peer& peer, const nic::Packet& packet, const SendOptions& options, Out& out) {
  if (packet.message_length > message_bytes_max) {
    return fail(Code::overflow, "reliable link: a message of ", packet.message_length, " B, the most is ",
                message_bytes_max, " B (SLMP's offset has 4 bytes)");
  }
  const auto room = [&](const nic::Packet& part) {
    return config.datagram_bytes - datagram_header_bytes - datagram_tag_bytes - packet_header_bytes(part);
  };
  const bool atomic = packet.operation == nic::Operation::atomic || packet.operation == nic::Operation::fetch_atomic;
  if (atomic && packet.payload.length > room(packet)) {
    return fail(Code::invalid, "reliable link: an atomic of ", packet.payload.length, " B; a datagram of ",
                config.datagram_bytes, " B carries ", room(packet), " B of it (datagram_bytes)");
  }
  const bool alone = packet.operation == nic::Operation::ack;  // an ack names a message of the peer, not ours
  const bool plain = options.reliability == Reliability::none;
  const bool refers = !options.copy && packet.payload.length > config.copy_bytes;
  const bool ends = packet.is_last() || packet.missing > 0;
  uint32_t message_id = 0;
  OpenMessage* message = nullptr;
  if (packet.is_header()) {
    message_id = plain ? peer.next_plain_message++ : packet.is_answer() ? peer.next_answer++ : peer.next_message++;
  }
  if (!alone && (refers || !ends || !packet.is_header())) {
    const auto [found, is_new] = peer.messages.try_emplace(packet.message);
    message = &found->second;
    SPL_ASSERT(is_new == packet.is_header(), "message ", packet.message, " at offset ", packet.offset);
    if (is_new) *message = OpenMessage{message_id, 0, false, options.ticket != 0};
    message_id = message->id;
  }
  nic::Packet fragment = packet;
  uint64_t left = packet.payload.length;
  do {
    fragment.payload.length = std::min<uint64_t>(left, room(fragment));
    const bool first_or_last = fragment.is_header() || fragment.is_last() || fragment.missing > 0;
    SendOptions of_fragment = options;
    if (options.reliability == Reliability::message && !first_or_last) of_fragment.reliability = Reliability::none;
    if (refers && options.ticket != 0) ++peer.tickets[options.ticket];
    if (refers && options.ticket == 0 && message != nullptr) ++message->unreleased;
    enqueue(peer, fragment, of_fragment, message_id, refers);
    left -= fragment.payload.length;
    fragment.offset += fragment.payload.length;
    fragment.payload.bytes += fragment.payload.length;
  } while (left > 0);
  if (!refers && options.ticket != 0) out.released.push_back(options.ticket);
  if (message != nullptr && ends) {
    message->given = true;
    close_message(peer, packet.message, out);
  } else if (message == nullptr && !alone && options.ticket == 0) {
    out.message_sent.push_back(packet.message);
  }
  pump(now, peer, out);
  return {};
}

void Reliable::Impl::enqueue(Peer& peer, const nic::Packet& fragment, const SendOptions& options, uint32_t message_id,
                             bool refers) {
  Segment& segment = (fragment.is_answer() ? peer.answers : peer.waiting).emplace_back();
  segment.packet = fragment;
  segment.message_id = message_id;
  segment.ticket = options.ticket;
  segment.refers = refers;
  segment.flags = options.reliability == Reliability::none ? uint16_t{0} : slmp::syn;
  if (fragment.is_last() || fragment.missing > 0) segment.flags |= slmp::eom;
  if (refers || fragment.payload.length == 0) return;
  segment.copy.assign(fragment.payload.bytes, fragment.payload.bytes + fragment.payload.length);
}

// Transmits as many segments as the windows allow: first what is lost, then answers, then the others.
void Reliable::Impl::pump(Time now, Peer& peer, Out& out) {
  const bool was_idle = peer.flight.empty();
  if (peer.losses > 0) repeat(now, peer, out);
  pump(now, peer, peer.answers, out);
  pump(now, peer, peer.waiting, out);
  const bool begins = was_idle && !peer.flight.empty();  // the old deadline was for a sign of life
  if (begins || peer.deadline == Time::never()) await(now, peer);
}

bool Reliable::Impl::may_send(const Peer& peer) const {
  return peer.outstanding < std::min(peer.congestion_window, config.window) &&
         peer.flight.size() < ReliableConfig::window_max;
}

void Reliable::Impl::pump(Time now, Peer& peer, std::deque<Segment>& queue, Out& out) {
  while (!queue.empty()) {
    Segment& next = queue.front();
    if ((next.flags & slmp::syn) == 0) {
      next.sequence = peer.next_plain_sequence++;
      transmit(now, peer, next, false, out);
      Segment gone = std::move(next);
      queue.pop_front();
      retire(gone, out);
      if (gone.refers) release(peer, gone, out);
      continue;
    }
    const bool taken = next.packet.is_answer() || distance(peer.next_sequence, peer.room_end) > 0;
    if (!taken || !may_send(peer)) break;
    next.sequence = peer.next_sequence++;
    peer.flight.push_back(std::move(next));
    queue.pop_front();
    ++peer.outstanding;
    transmit(now, peer, peer.flight.back(), asks(peer, peer.flight.back(), !queue.empty()), out);
  }
}

// Sends lost segments again, the oldest first.
void Reliable::Impl::repeat(Time now, Peer& peer, Out& out) {
  for (Segment& segment : peer.flight) {
    if (peer.losses == 0 || !may_send(peer)) break;
    if (!segment.lost) continue;
    segment.lost = false;
    --peer.losses;
    ++peer.outstanding;
    transmit(now, peer, segment, true, out);
    if (&segment == &peer.flight.front()) await(now, peer);
  }
}

// True if the peer should acknowledge this segment at once: so often that the window never runs dry, and whenever a
// buffer waits for the acknowledgement.
bool Reliable::Impl::asks(Peer& peer, const Segment& segment, bool more) const {
  const uint32_t window = std::min(peer.congestion_window, config.window);
  const bool part = ++peer.since_asked >= std::max(window / 4, 1u);
  const bool stops = more && (!may_send(peer) || peer.next_sequence == peer.room_end);
  const bool ends = segment.refers && (segment.flags & slmp::eom) != 0;
  if (!part && !stops && !ends) return false;
  peer.since_asked = 0;
  return true;
}

void Reliable::Impl::transmit(Time now, Peer& peer, Segment& segment, bool at_once, Out& out) {
  DatagramHeader header = header_to(now, peer);
  header.flags = static_cast<uint16_t>(segment.flags | (at_once ? slmp::now : 0));
  header.message_id = segment.message_id;
  header.offset = static_cast<uint32_t>(segment.packet.offset);
  header.sequence = segment.sequence;
  if ((segment.flags & slmp::syn) != 0) header.ordinal = segment.ordinal = peer.next_ordinal++;
  const size_t at = begin(header, out.bytes);
  std::span<const uint8_t> payload;
  if (!segment.probe) {
    nic::Packet& packet = segment.packet;
    if (!segment.refers) packet.payload.bytes = segment.copy.data();
    if (packet.payload.length <= together_most) {
      encode(packet, out.bytes);
    } else {
      encode_header(packet, out.bytes);
      payload = {packet.payload.bytes, packet.payload.length};
    }
  }
  const size_t head_bytes = out.bytes.size() - at;
  seal(config.secret, at, out.bytes, payload);
  out.transmit.push_back({peer.rank, at, head_bytes, payload});
  ++(segment.sends++ == 0 ? counts.segments_sent : counts.retransmitted);
  segment.sent = now;
  if (peer.ahead_count == 0) paid(peer);
  if (!peer.talked) peer.heard = now;
  peer.talked = true;
}

// Keeps the bytes of a segment that goes: a datagram of this Out may refer to them.
void Reliable::Impl::retire(Segment& segment, Out& out) {
  if (segment.copy.size() > together_most) out.kept.push_back(std::move(segment.copy));
}

// Sends a segment without a packet (a probe), which the peer acknowledges whatever its window is.
void Reliable::Impl::probe(Time now, Peer& peer, Out& out) {
  Segment& segment = peer.flight.emplace_back();
  segment.probe = true;
  segment.flags = slmp::syn;
  segment.sequence = peer.next_sequence++;
  ++peer.outstanding;
  transmit(now, peer, segment, true, out);
}

// Notes that a segment will not read its payload any more.
void Reliable::Impl::release(Peer& peer, const Segment& segment, Out& out) {
  if (segment.ticket == 0) {
    const auto found = peer.messages.find(segment.packet.message);
    SPL_ASSERT(found != peer.messages.end() && found->second.unreleased > 0, "message ", segment.packet.message);
    --found->second.unreleased;
    return close_message(peer, segment.packet.message, out);
  }
  const auto found = peer.tickets.find(segment.ticket);
  SPL_ASSERT(found != peer.tickets.end(), "ticket ", segment.ticket);
  if (--found->second > 0) return;
  peer.tickets.erase(found);
  out.released.push_back(segment.ticket);
}

void Reliable::Impl::close_message(Peer& peer, uint64_t name, Out& out) {
  const auto found = peer.messages.find(name);
  if (!found->second.given || found->second.unreleased > 0) return;
  if (!found->second.ticketed) out.message_sent.push_back(name);
  peer.messages.erase(found);
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
  earliest = std::min(earliest, at);
}

// Sets the deadline for what this peer owes next: an acknowledgement, room for what waits, or a sign of life.
void Reliable::Impl::await(Time now, Peer& peer) {
  if (peer.lost) {
    peer.deadline = Time::never();
  } else if (!peer.flight.empty() || !peer.waiting.empty() || !peer.answers.empty()) {
    set_deadline(peer, now + timeout_of(peer));
  } else if (peer.talked && config.keepalive != Time::never()) {
    set_deadline(peer, std::max(now, peer.heard) + config.keepalive);
  } else {
    peer.deadline = Time::never();
  }
}

void Reliable::Impl::knock(Time now, Peer& peer, Out& out) {
  DatagramHeader header;
  header.flags = slmp::ack;
  header.source = self;
  header.target = peer.rank;
  header.source_epoch = peer.own_epoch + 1;
  header.target_epoch = peer.epoch + 1;
  header.window = config.window;
  header.echo = UINT32_MAX;  // nothing has come in that life
  const size_t at = begin(header, out.bytes);
  seal(config.secret, at, out.bytes);
  out.transmit.push_back({peer.rank, at, datagram_header_bytes, {}});
  set_deadline(peer, now + config.knock_every);
}

void Reliable::Impl::timeout(Time now, Peer& peer, Out& out) {
  if (peer.lost) {
    peer.deadline = Time::never();
    if (peer.parted) knock(now, peer, out);
    return;
  }
  if (peer.flight.empty()) {
    probe(now, peer, out);
    return await(now, peer);
  }
  ++counts.timeouts;
  if (++peer.backoff > config.timeouts_max && now - peer.heard >= config.silence) {
    return lose(peer, LostWhy::silent, out);
  }
  // Only the oldest is sent again: the acknowledgement of it tells what else is lost. The first time-out may come from
  // a peer that was not running, so it changes nothing else.
  Segment& oldest = peer.flight.front();
  if (oldest.lost) {
    oldest.lost = false;
    --peer.losses;
    ++peer.outstanding;
  }
  transmit(now, peer, oldest, true, out);
  peer.probing = true;
  peer.probe_ordinal = oldest.ordinal;
  if (peer.backoff > 1) shrink(peer, peer.congestion_window / 2);
  await(now, peer);
}

void Reliable::Impl::lose(Peer& peer, LostWhy why, Out& out) {
  peer.left = unacknowledged(peer);
  peer.left.lost = true;
  peer.lost = true;
  for (auto* queue : {&peer.flight, &peer.answers, &peer.waiting}) {
    for (Segment& segment : *queue) {
      retire(segment, out);
      if (segment.refers) release(peer, segment, out);
    }
    queue->clear();
  }
  peer.outstanding = peer.losses = 0;
  paid(peer);
  peer.messages.clear();  // on_send answers further packets of messages that are still open
  peer.held.clear();
  peer.deadline = Time::never();
  out.lost.push_back({peer.rank, why, peer.answered});
}

}  // namespace spinloom::wire
