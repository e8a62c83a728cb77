// Datagrams that leave: fragments, windows, retransmission, buffers that become free, and peers that are lost.
#include <algorithm>
#include <utility>

#include "wire/reliable_impl.hpp"

namespace spinloom::wire {

// The offset in SLMP's header has four bytes.
constexpr uint64_t message_bytes_max = uint64_t{1} << 32;

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
  uint32_t message_id = 0;
  OpenMessage* message = nullptr;
  if (packet.is_header()) {
    message_id = plain ? peer.next_plain_message++ : packet.is_answer() ? peer.next_answer++ : peer.next_message++;
  }
  if (!alone) {
    const auto [found, is_new] = peer.messages.try_emplace(packet.message);
    message = &found->second;
    SPL_ASSERT(is_new == packet.is_header(), "message ", packet.message, " at offset ", packet.offset);
    if (is_new) *message = OpenMessage{message_id, 0, false, options.ticket != 0};
    message_id = message->id;
  }
  const bool refers = !options.copy && packet.payload.length > config.copy_bytes;
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
  if (message != nullptr && (packet.is_last() || packet.missing > 0)) {
    message->given = true;
    close_message(peer, packet.message, out);
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

// Transmits as many waiting segments as both windows allow.
void Reliable::Impl::pump(Time now, Peer& peer, Out& out) {
  const bool was_idle = peer.flight.empty();
  pump(now, peer, peer.answers, out);
  pump(now, peer, peer.waiting, out);
  const bool begins = was_idle && !peer.flight.empty();  // the old deadline was for a sign of life
  if (begins || peer.deadline == Time::never()) await(now, peer);
}

void Reliable::Impl::pump(Time now, Peer& peer, std::deque<Segment>& queue, Out& out) {
  while (!queue.empty()) {
    Segment& next = queue.front();
    if ((next.flags & slmp::syn) == 0) {
      next.sequence = peer.next_plain_sequence++;
      transmit(now, peer, next, out);
      const Segment gone = std::move(next);
      queue.pop_front();
      if (gone.refers) release(peer, gone, out);
      continue;
    }
    const bool taken = next.packet.is_answer() || distance(peer.next_sequence, peer.room_end) > 0;
    if (!taken || peer.flight.size() >= config.window) break;
    next.sequence = peer.next_sequence++;
    peer.flight.push_back(std::move(next));
    queue.pop_front();
    transmit(now, peer, peer.flight.back(), out);
  }
}

void Reliable::Impl::transmit(Time now, Peer& peer, Segment& segment, Out& out) {
  DatagramHeader header = header_to(peer);
  header.flags = segment.flags;
  header.message_id = segment.message_id;
  header.offset = static_cast<uint32_t>(segment.packet.offset);
  header.sequence = segment.sequence;
  const size_t at = begin(header, out.bytes);
  if (!segment.probe) {
    if (!segment.refers) segment.packet.payload.bytes = segment.copy.data();
    encode(segment.packet, out.bytes);
  }
  seal(config.secret, at, out.bytes);
  out.transmit.push_back({peer.rank, at, out.bytes.size() - at});
  ++(segment.sends++ == 0 ? counts.segments_sent : counts.retransmitted);
  segment.sent = now;
  segment.passed = 0;
  if (!peer.talked) peer.heard = now;
  peer.talked = true;
}

// Sends a segment without a packet (a probe), which the peer acknowledges whatever its window is.
void Reliable::Impl::probe(Time now, Peer& peer, Out& out) {
  Segment& segment = peer.flight.emplace_back();
  segment.probe = true;
  segment.flags = slmp::syn;
  segment.sequence = peer.next_sequence++;
  transmit(now, peer, segment, out);
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

// The smoothed round trip plus four times its variation (RFC 6298), doubled for each time-out in a row.
Time Reliable::Impl::timeout_of(const Peer& peer) const {
  Time base = config.timeout_first;
  if (peer.round_trip > Time{0}) {
    base = std::clamp(peer.round_trip + peer.round_trip_variation * 4, config.timeout_min, config.timeout_max);
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

void Reliable::Impl::timeout(Time now, Peer& peer, Out& out) {
  if (peer.flight.empty()) {
    probe(now, peer, out);
    return await(now, peer);
  }
  ++counts.timeouts;
  if (++peer.backoff > config.timeouts_max) return lose(peer, LostWhy::silent, out);
  // Each segment is acknowledged separately: without an acknowledgement by now, the segment or its acknowledgement
  // was lost.
  const Time age = peer.backoff == 1 ? timeout_of(peer) : Time{0};
  const Time before = now - Time{age.ps / 2};
  for (Segment& segment : peer.flight) {
    if (!segment.acked && segment.sent <= before) transmit(now, peer, segment, out);
    if (peer.backoff > 1) break;  // a peer that stays silent gets only one segment again
  }
  await(now, peer);
}

void Reliable::Impl::lose(Peer& peer, LostWhy why, Out& out) {
  peer.left = unacknowledged(peer);
  peer.left.lost = true;
  peer.lost = true;
  for (auto* queue : {&peer.flight, &peer.answers, &peer.waiting}) {
    for (const Segment& segment : *queue) {
      if (segment.refers) release(peer, segment, out);
    }
    queue->clear();
  }
  peer.messages.clear();  // on_send answers further packets of messages that are still open
  peer.held.clear();
  peer.deadline = Time::never();
  out.lost.push_back({peer.rank, why});
}

}  // namespace spinloom::wire
