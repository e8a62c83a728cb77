// Datagrams that come: acknowledgements, duplicates, order.
#include <algorithm>
#include <utility>

#include "nic/wire/reliable_impl.hpp"

namespace spinloom::wire {

// A segment counts as lost when one that was sent this many transmissions later has come.
constexpr int32_t passed_max = 3;

// Headers are delivered in the order sent. Answers are not: they overtake headers that wait for room.
static bool is_ordered(const nic::Packet& packet) { return packet.is_header() && !packet.is_answer(); }

Status Reliable::Impl::receive(Time now, std::span<const uint8_t> bytes, Out& out) {
  const auto opened = open(config.secret, bytes);
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
  if (peer->lost && peer->parted && is_of_later_life(*peer, header)) begin_later_life(now, *peer, header, out);
  if (peer->lost) {
    ++counts.to_lost;
    return fail(Code::environment, "datagram: from rank ", header.source, ", which is lost");
  }
  if (config.returns && is_of_later_life(*peer, header)) {
    lose(*peer, LostWhy::has_lost_us, out);
    return fail(Code::environment, "datagram: rank ", header.source, " has lost this rank, and would come back");
  }
  if (header.target_epoch == peer->own_epoch && distance(peer->epoch, header.source_epoch) > 0) {
    lose(*peer, LostWhy::restarted, out);
    return fail(Code::environment, "datagram: rank ", header.source, " has started again");
  }
  if (header.source_epoch != peer->epoch || header.target_epoch != peer->own_epoch) {
    ++counts.stale;
    return fail(Code::invalid, "datagram: from life ", header.source_epoch, " of rank ", header.source, " to life ",
                header.target_epoch, "; they are ", peer->epoch, " and ", peer->own_epoch);
  }
  peer->heard = now;
  peer->answered = true;
  peer->talked = true;
  peer->backoff = 0;
  take_received(now, *peer, *opened, out);
  if ((header.flags & slmp::ack) != 0) return {};
  return (header.flags & slmp::syn) != 0 ? take_segment(now, *peer, *opened, out) : take_plain(*peer, *opened, out);
}

// True if the datagram comes from a later life of both ends. It need not be the next life: one of them may have been in
// lives that the other has not heard of.
bool Reliable::Impl::is_of_later_life(const Peer& peer, const DatagramHeader& header) {
  return distance(peer.epoch, header.source_epoch) > 0 && distance(peer.own_epoch, header.target_epoch) > 0;
}

// The sign of life that it asks for tells the peer, which may not have heard a knock, that this life has begun.
void Reliable::Impl::begin_later_life(Time now, Peer& peer, const DatagramHeader& header, Out& out) {
  Peer next;
  next.rank = peer.rank;
  next.epoch = header.source_epoch;
  next.own_epoch = header.target_epoch;
  next.listed = peer.listed;
  next.heard = now;
  begin_life(next);
  peer = std::move(next);
  out.back.push_back(peer.rank);
  probe(now, peer, out);
  await(now, peer);
}

// The packet in a datagram of this peer, checked against the datagram's source, target and offset.
Result<nic::Packet> Reliable::Impl::packet_of(const Peer& peer, const Datagram& datagram) {
  auto packet = decode(datagram.body);
  if (packet && (packet->source != peer.rank || packet->target != self ||
                 static_cast<uint32_t>(packet->offset) != datagram.header.offset)) {
    packet = fail(Code::invalid, "packet: from rank ", packet->source, " to rank ", packet->target, " at offset ",
                  packet->offset, "; its datagram is from rank ", peer.rank, " at offset ", datagram.header.offset);
  }
  if (!packet) ++counts.malformed;
  return packet;
}

Status Reliable::Impl::take_segment(Time now, Peer& peer, const Datagram& datagram, Out& out) {
  const DatagramHeader& header = datagram.header;
  if (!peer.has_newest || distance(peer.newest_ordinal, header.ordinal) > 0) {
    peer.has_newest = true;
    peer.newest_ordinal = header.ordinal;
    peer.newest_at = now;
  }
  const int32_t ahead = distance(peer.expected, header.sequence);
  if (ahead < 0 || (ahead < static_cast<int32_t>(ReliableConfig::window_max) && peer.ahead.holds(header.sequence))) {
    ++counts.duplicates;
    owe(peer, now);  // the first acknowledgement may be lost
    return {};
  }
  if (ahead >= static_cast<int32_t>(ReliableConfig::window_max)) {
    ++counts.malformed;
    return fail(Code::invalid, "datagram: segment ", header.sequence, " of rank ", peer.rank,
                " is beyond the window: ", peer.expected, " is the next, the window ", ReliableConfig::window_max);
  }
  const bool is_probe = datagram.body.empty();
  nic::Packet packet;
  if (!is_probe) {
    SPL_ASSIGN(packet, packet_of(peer, datagram));
    const bool comes_late = is_ordered(packet) && (distance(peer.expected_message, header.message_id) < 0 ||
                                                   peer.held.contains(header.message_id));
    if (comes_late) {
      ++counts.malformed;
      return fail(Code::invalid, "datagram: message ", header.message_id, " of rank ", peer.rank, " begins twice");
    }
  }
  peer.ahead.add(header.sequence);
  const bool had_hole = peer.ahead_count++ > 0;
  if (!had_hole || distance(peer.ahead_end, header.sequence) >= 0) peer.ahead_end = header.sequence + 1;
  while (peer.ahead.holds(peer.expected)) {
    peer.ahead.remove(peer.expected++);
    --peer.ahead_count;
  }
  ++peer.owed;
  const bool at_once =
      is_probe || had_hole || peer.ahead_count > 0 || peer.owed >= config.acks_after || (header.flags & slmp::now) != 0;
  owe(peer, at_once ? now : now + config.ack_delay);
  if (is_probe) return {};
  if (is_ordered(packet) && header.message_id != peer.expected_message) {
    ++counts.held;
    peer.held.emplace(header.message_id, std::vector<uint8_t>(datagram.body.begin(), datagram.body.end()));
    return {};
  }
  out.deliver.push_back(packet);
  ++counts.delivered;
  if (!is_ordered(packet)) return {};
  ++peer.expected_message;
  deliver_held(peer, out);
  return {};
}

void Reliable::Impl::deliver_held(Peer& peer, Out& out) {
  for (auto found = peer.held.find(peer.expected_message); found != peer.held.end();
       found = peer.held.find(++peer.expected_message)) {
    out.kept.push_back(std::move(found->second));
    peer.held.erase(found);
    auto packet = decode(out.kept.back());
    SPL_ASSERT(packet.ok(), "a held header was a packet when it came");
    out.deliver.push_back(*packet);
    ++counts.delivered;
  }
}

// Takes a segment without SYN, which is never sent again. Drops a segment that comes after a whole window of later
// segments, and a header that comes after a later header.
Status Reliable::Impl::take_plain(Peer& peer, const Datagram& datagram, Out& out) {
  const DatagramHeader& header = datagram.header;
  constexpr auto window = static_cast<int32_t>(ReliableConfig::window_max);
  const int32_t behind = distance(header.sequence, peer.plain_end);  // 1 for the latest segment
  if (behind > window || (behind > 0 && peer.plain.holds(header.sequence))) {
    ++counts.duplicates;
    return {};
  }
  SPL_ASSIGN(const nic::Packet packet, packet_of(peer, datagram));
  if (behind <= -window) {
    peer.plain = Ahead{};
    peer.plain_end = header.sequence + 1;
  }
  while (distance(peer.plain_end, header.sequence) >= 0) peer.plain.remove(peer.plain_end++);
  peer.plain.add(header.sequence);
  if (packet.is_header()) {
    // If only the ends of this message had SYN, its first segment would have it. So the message has no SYN at all.
    if (distance(peer.plain_message, header.message_id) < 0) {
      ++counts.duplicates;
      return {};
    }
    peer.plain_message = header.message_id + 1;
  }
  out.deliver.push_back(packet);
  ++counts.delivered;
  return {};
}

DatagramHeader Reliable::Impl::header_to(Time now, const Peer& peer) const {
  DatagramHeader header;
  header.source = self;
  header.target = peer.rank;
  header.source_epoch = peer.own_epoch;
  header.target_epoch = peer.epoch;
  header.received = peer.expected;
  header.window = peer.room;
  if (peer.has_newest) {
    constexpr int64_t delay_most = UINT32_MAX;
    header.echo = peer.newest_ordinal;
    header.delay_ns = static_cast<uint32_t>(std::clamp<int64_t>((now - peer.newest_at).ps / 1000, 0, delay_most));
  } else {
    header.echo = UINT32_MAX;  // the one before the first
  }
  return header;
}

// ---- acknowledgements that leave ----

void Reliable::Impl::owe(Peer& peer, Time at) {
  if (!std::exchange(peer.listed, true)) owing.push_back(&peer);
  peer.ack_at = std::min(peer.ack_at, at);
  earliest_ack = std::min(earliest_ack, at);
}

void Reliable::Impl::paid(Peer& peer) {
  peer.ack_at = Time::never();
  peer.owed = 0;
}

// Sends the acknowledgements that must leave by the time `due`.
void Reliable::Impl::pay(Time due, Time now, Out& out) {
  earliest_ack = Time::never();
  std::erase_if(owing, [&](Peer* peer) {
    if (peer->ack_at != Time::never() && peer->ack_at <= due) acknowledge(now, *peer, out);
    earliest_ack = std::min(earliest_ack, peer->ack_at);
    peer->listed = peer->ack_at != Time::never();
    return !peer->listed;
  });
}

void Reliable::Impl::acknowledge(Time now, Peer& peer, Out& out) {
  DatagramHeader header = header_to(now, peer);
  header.flags = slmp::ack;
  header.offset = peer.moved;
  const size_t at = begin(header, out.bytes);
  if (peer.ahead_count > 0) {
    const uint32_t bits = peer.ahead_end - peer.expected - 1;
    const size_t body = out.bytes.size();
    out.bytes.resize(body + (bits + 7) / 8);
    for (uint32_t i = 0; i < bits; ++i) {
      if (peer.ahead.holds(peer.expected + 1 + i)) out.bytes[body + i / 8] |= static_cast<uint8_t>(1u << (i % 8));
    }
  }
  const size_t head_bytes = out.bytes.size() - at;
  seal(config.secret, at, out.bytes);
  out.transmit.push_back({peer.rank, at, head_bytes, {}});
  ++counts.acknowledgements;
  paid(peer);
}

// ---- acknowledgements that come ----

// Takes what a datagram acknowledges: everything before `received` has come there, and what a list in the body of an
// acknowledgement names; the peer takes `window` segments more.
void Reliable::Impl::take_received(Time now, Peer& peer, const Datagram& datagram, Out& out) {
  const DatagramHeader& header = datagram.header;
  const bool is_ack = (header.flags & slmp::ack) != 0;
  if (is_ack && distance(peer.moved_there, header.offset) > 0) peer.moved_there = header.offset;
  if (distance(header.received, peer.next_sequence) < 0) return;  // segments that were never sent
  const uint32_t room_end = header.received + std::min(header.window, ReliableConfig::window_max);
  if (distance(peer.room_end, room_end) > 0) peer.room_end = room_end;
  if (!peer.flight.empty()) {
    const bool was_full = !may_send(peer);
    const uint32_t before = peer.outstanding;
    sample(now, peer, header);
    bool progress = false;
    while (!peer.flight.empty() &&
           (peer.flight.front().acked || distance(peer.flight.front().sequence, header.received) > 0)) {
      acknowledged(peer, peer.flight.front());
      Segment done = std::move(peer.flight.front());
      peer.flight.pop_front();
      retire(done, out);
      if (done.refers) release(peer, done, out);
      progress = true;
    }
    const bool lists = is_ack && !datagram.body.empty();
    if (lists && !peer.flight.empty()) {
      const int32_t first = distance(peer.flight.front().sequence, header.received);
      const size_t bits = std::min<size_t>(datagram.body.size() * 8, ReliableConfig::window_max);
      for (size_t i = 0; i < bits; ++i) {
        if ((datagram.body[i / 8] >> (i % 8) & 1) == 0) continue;
        const int64_t index = int64_t{first} + 1 + static_cast<int64_t>(i);
        if (index >= 0 && index < static_cast<int64_t>(peer.flight.size())) {
          acknowledged(peer, peer.flight[static_cast<size_t>(index)]);
        }
      }
    }
    grow(peer, before - peer.outstanding, was_full);
    const bool sent = distance(header.echo, peer.next_ordinal) > 0;
    const bool probed = peer.probing && sent && distance(peer.probe_ordinal, header.echo) >= 0;
    if (sent && (lists || probed)) find_losses(peer, header.echo);
    if (probed) peer.probing = false;
    if (peer.flight.empty()) peer.since_asked = 0;
    pump(now, peer, out);
    if (progress) await(now, peer);
    return;
  }
  pump(now, peer, out);
}

void Reliable::Impl::acknowledged(Peer& peer, Segment& segment) {
  if (std::exchange(segment.acked, true)) return;
  --(std::exchange(segment.lost, false) ? peer.losses : peer.outstanding);
}

// Marks as lost what was sent long before a transmission that has come.
void Reliable::Impl::find_losses(Peer& peer, uint32_t echo) {
  const bool probed = peer.probing && distance(peer.probe_ordinal, echo) >= 0;
  bool anew = false;
  for (Segment& segment : peer.flight) {
    if (segment.acked || segment.lost) continue;
    const bool passed = distance(segment.ordinal, echo) >= passed_max;
    const bool before_probe = probed && distance(segment.ordinal, peer.probe_ordinal) > 0;
    if (!passed && !before_probe) continue;
    segment.lost = true;
    ++peer.losses;
    --peer.outstanding;
    anew = anew || distance(peer.recovery_end, segment.sequence) >= 0;
  }
  if (anew) shrink(peer, peer.congestion_window - peer.congestion_window / 4);
}

void Reliable::Impl::shrink(Peer& peer, uint32_t congestion_window) {
  peer.congestion_window = std::max(congestion_window, std::min(ReliableConfig::window_least, config.window));
  peer.slow_start_threshold = peer.congestion_window;
  peer.congestion_credit = 0;
  peer.recovery_end = peer.next_sequence;
}

// Lets more segments be under way, if the congestion_window window was what held them back.
void Reliable::Impl::grow(Peer& peer, uint32_t segments, bool was_full) {
  if (!was_full || segments == 0 || peer.congestion_window >= config.window) return;
  if (peer.congestion_window < peer.slow_start_threshold) {
    peer.congestion_window = std::min(peer.congestion_window + segments, config.window);
    return;
  }
  peer.congestion_credit += segments;
  if (peer.congestion_credit < peer.congestion_window) return;
  peer.congestion_credit -= peer.congestion_window;
  ++peer.congestion_window;
}

// Measures the round trip by the transmission that this datagram echoes, less the time that the peer kept it.
void Reliable::Impl::sample(Time now, Peer& peer, const DatagramHeader& header) {
  const int32_t index = distance(peer.flight.front().ordinal, header.echo);  // unless segments were sent again
  if (index < 0 || index >= static_cast<int32_t>(peer.flight.size())) return;
  const Segment& echoed = peer.flight[static_cast<size_t>(index)];
  if (echoed.ordinal != header.echo || echoed.acked) return;
  const Time taken = std::max(now - echoed.sent - Time{int64_t{header.delay_ns} * 1000}, Time{1});
  if (peer.round_trip == Time{0}) {
    peer.round_trip = taken;
    peer.round_trip_variation = Time{taken.ps / 2};
    return;
  }
  const int64_t off = taken.ps - peer.round_trip.ps;
  peer.round_trip_variation += Time{((off < 0 ? -off : off) - peer.round_trip_variation.ps) / 4};
  peer.round_trip = std::max(peer.round_trip + Time{off / 8}, Time{1});
}

}  // namespace spinloom::wire
