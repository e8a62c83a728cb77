// Datagrams that come: acknowledgements, duplicates, order.
#include <algorithm>
#include <utility>

#include "wire/reliable_impl.hpp"

namespace spinloom::wire {

// A segment counts as lost after so many acknowledgements of later segments.
constexpr uint32_t passed_max = 3;

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
  if (peer->lost) {
    ++counts.to_lost;
    return fail(Code::environment, "datagram: from rank ", header.source, ", which is lost");
  }
  if (header.target_epoch == config.epoch && distance(peer->epoch, header.source_epoch) > 0) {
    lose(*peer, LostWhy::restarted, out);
    return fail(Code::environment, "datagram: rank ", header.source, " has started again");
  }
  if (header.source_epoch != peer->epoch || header.target_epoch != config.epoch) {
    ++counts.stale;
    return fail(Code::invalid, "datagram: from life ", header.source_epoch, " of rank ", header.source, " to life ",
                header.target_epoch, "; they are ", peer->epoch, " and ", config.epoch);
  }
  peer->heard = now;
  peer->talked = true;
  peer->backoff = 0;
  if ((header.flags & slmp::ack) != 0) take_answer(*peer, header);
  take_received(now, *peer, header, out);
  if ((header.flags & slmp::ack) != 0) {
    take_ack(now, *peer, header, out);
    return {};
  }
  return (header.flags & slmp::syn) != 0 ? take_segment(*peer, *opened, out) : take_plain(*peer, *opened, out);
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

Status Reliable::Impl::take_segment(Peer& peer, const Datagram& datagram, Out& out) {
  const DatagramHeader& header = datagram.header;
  const int32_t ahead = distance(peer.expected, header.sequence);
  if (ahead < 0 || (ahead < static_cast<int32_t>(ReliableConfig::window_max) && peer.ahead.holds(header.sequence))) {
    ++counts.duplicates;
    acknowledge(peer, header, out);  // the first acknowledgement may be lost
    return {};
  }
  if (ahead >= static_cast<int32_t>(ReliableConfig::window_max)) {
    ++counts.malformed;
    return fail(Code::invalid, "datagram: segment ", header.sequence, " of rank ", peer.rank,
                " is beyond the window: ", peer.expected, " is the next, the window ", ReliableConfig::window_max);
  }
  const bool is_probe = datagram.body.empty();
  DatagramHeader answered = header;
  if (is_probe) answered.offset = peer.moved;  // a probe has no bytes, so the offset is free for this count
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
  while (peer.ahead.holds(peer.expected)) peer.ahead.remove(peer.expected++);
  acknowledge(peer, answered, out);
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
    // Where only the ends of a message have SYN, its first segment has SYN; so this message has no SYN at all.
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

DatagramHeader Reliable::Impl::header_to(const Peer& peer) const {
  DatagramHeader header;
  header.source = self;
  header.target = peer.rank;
  header.source_epoch = config.epoch;
  header.target_epoch = peer.epoch;
  header.received = peer.expected;
  header.window = peer.room;
  return header;
}

void Reliable::Impl::acknowledge(const Peer& peer, const DatagramHeader& segment, Out& out) {
  DatagramHeader header = header_to(peer);
  header.flags = static_cast<uint16_t>(segment.flags | slmp::syn | slmp::ack);
  header.message_id = segment.message_id;
  header.offset = segment.offset;
  header.sequence = segment.sequence;
  const size_t at = begin(header, out.bytes);
  seal(config.secret, at, out.bytes);
  out.transmit.push_back({peer.rank, at, out.bytes.size() - at});
  ++counts.acknowledgements;
}

// Takes what the header says: everything before `received` has come there, and the peer takes `window` segments more.
void Reliable::Impl::take_received(Time now, Peer& peer, const DatagramHeader& header, Out& out) {
  if (distance(header.received, peer.next_sequence) < 0) return;  // segments that were never sent
  const uint32_t room_end = header.received + std::min(header.window, ReliableConfig::window_max);
  if (distance(peer.room_end, room_end) > 0) peer.room_end = room_end;
  bool progress = false;
  while (!peer.flight.empty() &&
         (peer.flight.front().acked || distance(peer.flight.front().sequence, header.received) > 0)) {
    acknowledged(now, peer, peer.flight.front());
    const Segment done = std::move(peer.flight.front());
    peer.flight.pop_front();
    if (done.refers) release(peer, done, out);
    progress = true;
  }
  pump(now, peer, out);
  if (progress) await(now, peer);
}

// Reads the acknowledgement of a probe (a segment without a packet), which says how far the peer has gone on.
void Reliable::Impl::take_answer(Peer& peer, const DatagramHeader& header) {
  if (peer.flight.empty()) return;
  const int32_t index = distance(peer.flight.front().sequence, header.sequence);
  if (index < 0 || index >= static_cast<int32_t>(peer.flight.size())) return;
  if (peer.flight[static_cast<size_t>(index)].probe) peer.moved_there = header.offset;
}

void Reliable::Impl::take_ack(Time now, Peer& peer, const DatagramHeader& header, Out& out) {
  if (peer.flight.empty()) return;
  const int32_t index = distance(peer.flight.front().sequence, header.sequence);
  if (index < 0 || index >= static_cast<int32_t>(peer.flight.size())) return;
  acknowledged(now, peer, peer.flight[static_cast<size_t>(index)]);
  for (int32_t i = 0; i < index; ++i) {
    Segment& earlier = peer.flight[static_cast<size_t>(i)];
    if (!earlier.acked && ++earlier.passed == passed_max) transmit(now, peer, earlier, out);
  }
  DatagramHeader again = header;
  again.received = peer.flight.front().sequence;
  again.window = 0;
  take_received(now, peer, again, out);
}

void Reliable::Impl::acknowledged(Time now, Peer& peer, Segment& segment) {
  if (std::exchange(segment.acked, true) || segment.sends > 1) return;  // the ack may answer either copy
  const Time sample = now - segment.sent;
  if (peer.round_trip == Time{0}) {
    peer.round_trip = std::max(sample, Time{1});
    peer.round_trip_variation = Time{sample.ps / 2};
    return;
  }
  const int64_t off = sample.ps - peer.round_trip.ps;
  peer.round_trip_variation += Time{((off < 0 ? -off : off) - peer.round_trip_variation.ps) / 4};
  peer.round_trip = std::max(peer.round_trip + Time{off / 8}, Time{1});
}

}  // namespace spinloom::wire
