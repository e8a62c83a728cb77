// The part of ShmTransport for packets: into a peer's channel, and out of our own channels.
#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "live/shm/shm_transport.hpp"
#include "portals/interface/data_order.hpp"

namespace spinloom::live {
namespace {

constexpr uint64_t part_bytes = 32 << 10;  // parts of a long payload, so that both ends copy at the same time
constexpr int cells_per_poll = 32;
constexpr Time look_first{50'000'000};    // 50 us: first pause before a full channel is tried again
constexpr Time look_most{4'000'000'000};  // 4 ms: longest pause, for a peer that has taken nothing for long
static_assert(part_bytes + sizeof(PacketRecord) <= ChannelWriter::bulk_max(), "a part fits into a channel");

uint8_t* copy_out(uint8_t* to, const nic::Send& outbound, uint64_t offset, uint64_t length) {
  if (outbound.pieces.empty()) {
    if (length > 0) std::memcpy(to, outbound.packet.payload.bytes + offset, length);
    return to + length;
  }
  for (const nic::PayloadRef& piece : outbound.pieces) {
    if (length == 0) break;
    if (offset >= piece.length) {
      offset -= piece.length;
      continue;
    }
    const uint64_t now = std::min(length, piece.length - offset);
    std::memcpy(to, piece.bytes + offset, now);
    to += now;
    length -= now;
    offset = 0;
  }
  return to;
}

// True if a peer's packet has the values that this file relies on; the engine checks the others.
bool plausible(const nic::Packet& packet) {
  return packet.operation <= nic::Operation::reply && packet.fields.ack_request <= nic::AckRequest::oc_ack &&
         packet.fields.fail <= static_cast<uint8_t>(nic::Fail::no_match) &&
         packet.fields.list <= nic::ListKind::overflow;
}

// The fields of a small cell, for a put that is whole in its packet.
nic::QuickPut quick_of(const nic::Packet& packet) {
  nic::QuickPut put;
  put.bytes = packet.payload.bytes;
  put.length = packet.payload.length;
  put.portal = nic::PortalIndex{packet.fields.portal_index};
  put.match_bits = packet.fields.match_bits;
  put.remote_offset = packet.fields.remote_offset;
  put.hdr_data = packet.fields.hdr_data;
  return put;
}

}  // namespace

bool ShmTransport::send(nic::Send& outbound) {
  const uint32_t rank = outbound.packet.target.value;
  Peer& peer = *peers_[rank];
  if (peer.lost || (!attach(rank) && !peer.awaited)) return true;
  uint64_t done = 0;
  const bool answer = outbound.packet.is_answer();
  if (peer.attached && (answer ? peer.answers : peer.waiting).empty()) {
    const Wrote wrote = write(peer, outbound, done);
    if (wrote != Wrote::some || done > 0) peer.segment.header().doorbell.ring(peer.fence);
    if (wrote != Wrote::some) return wrote == Wrote::all;
  }
  return let_wait(peer, outbound, done);
}

// Keeps a packet until it can leave. Returns what send() returns.
bool ShmTransport::let_wait(Peer& peer, nic::Send& outbound, uint64_t done) {
  Waiting& last = enqueue(peer, outbound.packet.is_answer());
  last.outbound = std::move(outbound);
  last.done = done;
  const bool handlers = last.outbound.from_device && !last.outbound.slot.exists();
  last.outbound.at_once = last.outbound.at_once || handlers;  // a handler does not wait for the read
  if (last.outbound.at_once || portals::is_short_reply(last.outbound.packet)) keep_payload(last);
  return handlers;
}

bool ShmTransport::send_small(const nic::QuickPut& put, uint64_t message) {
  Peer& peer = *peers_[put.target.value];
  if (put.length > small_bytes || !peer.attached || peer.lost || !peer.waiting.empty() || peer.to.stopped())
    return false;
  if (!write_small(peer, put, message, nic::AckRequest::none)) return false;
  peer.segment.header().doorbell.ring(peer.fence);
  return true;
}

ShmTransport::Waiting& ShmTransport::enqueue(Peer& peer, bool answer) {
  if (!peer.waits() && !peer.awaited) {
    ++waiting_;
    look_at_ = pause_ = Time{};
  }
  return (answer ? peer.answers : peer.waiting).emplace_back();
}

// Copies a payload that must be read before send() returns.
void ShmTransport::keep_payload(Waiting& waiting) {
  nic::PayloadRef& payload = waiting.outbound.packet.payload;
  if (payload.length == 0) return;
  waiting.kept.resize(payload.length);
  copy_out(waiting.kept.data(), waiting.outbound, 0, payload.length);
  waiting.outbound.pieces.clear();
  payload.bytes = waiting.kept.data();
}

ShmTransport::Wrote ShmTransport::write(Peer& peer, nic::Send& outbound, uint64_t& done) {
  const nic::Packet& packet = outbound.packet;
  const uint64_t length = packet.payload.length;
  const bool stops = !packet.is_answer();
  if (stops && peer.to.stopped()) return Wrote::some;
  const bool whole = packet.operation == nic::Operation::put && length == packet.message_length;
  if (whole && length <= small_bytes && outbound.pieces.empty()) {
    return write_small(peer, quick_of(packet), packet.message, packet.fields.ack_request) ? Wrote::all : Wrote::some;
  }
  if (done == 0 && outbound.pieces.empty() && !outbound.at_once && can_lend(peer, packet.payload)) {
    return lend(peer, outbound) ? Wrote::lent : Wrote::some;
  }
  do {
    const uint64_t now = std::min(part_bytes, length - done);
    if (stops && peer.to.stopped()) return Wrote::some;
    if (!write_part(peer, outbound, done, now)) return Wrote::some;
    done += now;
  } while (done < length);
  return Wrote::all;
}

bool ShmTransport::write_small(Peer& peer, const nic::QuickPut& put, uint64_t message, nic::AckRequest ack) {
  const ChannelWriter::Room room = peer.to.reserve(0);
  if (room.cell == nullptr) return false;
  Cell& cell = *room.cell;  // filled in place: copying a cell just written would be slower
  cell.kind = CellKind::small;
  cell.ack_request = static_cast<uint8_t>(ack);
  cell.length = static_cast<uint8_t>(put.length);
  cell.message = message;
  cell.match_bits = put.match_bits;
  cell.remote_offset = put.remote_offset;
  cell.hdr_data = put.hdr_data;
  cell.portal = put.portal.value;
  if (put.length > 0) std::memcpy(cell.payload, put.bytes, put.length);
  peer.to.publish(room);
  return true;
}

bool ShmTransport::write_part(Peer& peer, const nic::Send& outbound, uint64_t done, uint64_t length) {
  const ChannelWriter::Room room = peer.to.reserve(static_cast<uint32_t>(sizeof(PacketRecord) + length));
  if (room.cell == nullptr) return false;
  PacketRecord record = outbound.packet;
  record.offset += done;
  record.payload = {};
  std::memcpy(room.bulk, &record, sizeof record);
  copy_out(room.bulk + sizeof record, outbound, done, length);
  Cell cell;
  cell.kind = CellKind::packet;
  cell.match_bits = room.bulk_offset;
  cell.remote_offset = length;
  peer.to.publish(room, cell);
  return true;
}

bool ShmTransport::write_taken(Peer& peer, uint64_t loan) {
  const ChannelWriter::Room room = peer.to.reserve(0);
  if (room.cell == nullptr) return false;
  Cell cell;
  cell.kind = CellKind::taken;
  cell.message = loan;
  peer.to.publish(room, cell);
  peer.segment.header().doorbell.ring(peer.fence);
  return true;
}

// Sends what waits for room or for the peer's go: answers first, each queue in its order. Returns whether anything
// left.
bool ShmTransport::flush(uint32_t rank) {
  Peer& peer = *peers_[rank];
  if (!peer.waits()) return false;
  bool moved = flush(peer, peer.answers);
  moved = flush(peer, peer.waiting) || moved;
  if (!peer.waits()) --waiting_;
  if (moved) peer.segment.header().doorbell.ring(peer.fence);
  return moved;
}

bool ShmTransport::flush(Peer& peer, std::deque<Waiting>& queue) {
  bool moved = false;
  while (!queue.empty()) {
    Waiting& first = queue.front();
    const uint64_t before = first.done;
    bool told = false;
    if (first.taken != UINT64_MAX) {
      if (!write_taken(peer, first.taken)) break;
    } else {
      const Wrote wrote = write(peer, first.outbound, first.done);
      if (wrote == Wrote::some) {
        moved = moved || first.done > before;
        break;
      }
      told = wrote == Wrote::all;
    }
    moved = true;
    const Reading reading = reading_of(first.outbound);
    queue.pop_front();
    if (told) client_.sent(reading);
  }
  return moved;
}

bool ShmTransport::poll() {
  bool happened = false;
  greet_new();
  happened = bury() || happened;
  for (size_t i = 0; i < readable_.size(); ++i) {
    const uint32_t rank = readable_[i];
    Peer& peer = *peers_[rank];
    if (peer.lost) continue;
    happened = read(rank) || happened;
    if (peer.open_loans > 0) happened = help(peer) || happened;
    if (peer.shared.active()) happened = end_shared(rank) || happened;
  }
  if (waiting_ == 0) return happened;
  if (!contacts_.empty()) happened = look_for_absent() || happened;
  if (waiting_ == contacts_.count()) return happened;
  bool moved = false;
  for (const uint32_t rank : readable_) moved = flush(rank) || moved;
  const Time now = monotonic_now();
  if (moved) pause_ = {};
  if (!moved && now < look_at_) return happened;
  pause_ = std::clamp(pause_ * 2, look_first, look_most);
  look_at_ = now + pause_;
  return happened || moved;
}

bool ShmTransport::read(uint32_t rank) {
  Peer& peer = *peers_[rank];
  int done = 0;
  for (; done < cells_per_poll && !peer.lost && !peer.from.empty(); ++done) {
    take(rank, peer.from.front());
    peer.from.release();
  }
  return done > 0;
}

void ShmTransport::take(uint32_t rank, const Cell& cell) {
  switch (cell.kind) {
    case CellKind::small: {
      if (cell.length > small_bytes || cell.ack_request > static_cast<uint8_t>(nic::AckRequest::oc_ack)) break;
      nic::Packet& packet = small_;
      packet.source = nic::Rank{rank};
      packet.message = cell.message;
      packet.message_length = cell.length;
      packet.payload = {nic::PayloadRef::Space::local, cell.payload, cell.length};
      packet.fields.user = cards_[rank].user;
      packet.fields.portal_index = cell.portal;
      packet.fields.match_bits = cell.match_bits;
      packet.fields.remote_offset = cell.remote_offset;
      packet.fields.hdr_data = cell.hdr_data;
      packet.fields.ack_request = static_cast<nic::AckRequest>(cell.ack_request);
      std::ignore = client_.arrived(*this, packet, 0);
      return;
    }
    case CellKind::packet:
    case CellKind::lent: return take_packet(rank, cell);
    case CellKind::taken: return give_back(rank, cell.message);
    case CellKind::heap: return map_heap(rank);
    case CellKind::bye: return lose(rank);
    default: break;
  }
  ++refused_;
}

void ShmTransport::take_packet(uint32_t rank, const Cell& cell) {
  const Peer& peer = *peers_[rank];
  const bool lent = cell.kind == CellKind::lent;
  const uint64_t length = lent ? cell.hdr_data : cell.remote_offset;
  const uint64_t behind = lent ? 0 : length;
  const uint8_t* const bulk =
      behind > ChannelMemory::bulk_bytes ? nullptr : peer.from.bulk(cell.match_bits, sizeof(PacketRecord) + behind);
  nic::Packet packet;
  if (bulk != nullptr) std::memcpy(static_cast<void*>(&packet), bulk, sizeof packet);
  if (bulk == nullptr || !plausible(packet)) {
    ++refused_;
  } else {
    packet.source = nic::Rank{rank};
    packet.target = nic::Rank{rank_};
    packet.fields.user = cards_[rank].user;
    packet.payload = {nic::PayloadRef::Space::local, bulk + sizeof packet, length};
    if (lent) {
      packet.payload.space = nic::PayloadRef::Space::peer;
      packet.payload.bytes = reinterpret_cast<const uint8_t*>(cell.remote_offset);
    }
    if (!client_.arrived(*this, packet, cell.message)) return;
  }
  if (lent) taken(nic::Rank{rank}, cell.message);
}

void ShmTransport::taken(nic::Rank rank, uint64_t loan) {
  Peer& peer = *peers_[rank.value];
  if (peer.shared.active()) {
    peer.taken_later.push_back(loan);
    return;
  }
  if (!peer.attached || peer.lost || (peer.answers.empty() && write_taken(peer, loan))) return;
  enqueue(peer, true).taken = loan;
}

void ShmTransport::stop(nic::Rank rank, bool stopped) {
  Peer& peer = *peers_[rank.value];
  peer.from.say_stopped(stopped);
  if (!stopped && peer.attached && !peer.lost) peer.segment.header().doorbell.ring(peer.fence);
}

void ShmTransport::give_back(uint32_t rank, uint64_t loan) {
  Peer& peer = *peers_[rank];
  if (loan >= peer.loans.size() || !peer.loans[loan].open) {
    ++refused_;
    return;
  }
  peer.loans[loan].open = false;
  --loans_;
  --peer.open_loans;
  client_.sent(peer.loans[loan].reading);
}

}  // namespace spinloom::live
