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
constexpr Time retry_pause_first{50'000'000};    // 50 us: first pause before a full channel is tried again
constexpr Time retry_pause_max{4'000'000'000};  // 4 ms: longest pause, for a peer that has taken nothing for long
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
  if (peer.lost || (!attach(rank) && !peer.card_awaited)) return true;
  uint64_t done = 0;
  const bool is_answer = outbound.packet.is_answer();
  if (peer.attached && (is_answer ? peer.answers : peer.waiting).empty()) {
    const WriteResult result = write(peer, outbound, done);
    if (result != WriteResult::some || done > 0) peer.segment.header().doorbell.ring(peer.needs_fence);
    if (result != WriteResult::some) return result == WriteResult::all;
  }
  return enqueue_send(peer, outbound, done);
}

// Keeps a packet until it can leave. Returns what send() returns.
bool ShmTransport::enqueue_send(Peer& peer, nic::Send& outbound, uint64_t done) {
  Waiting& last = enqueue(peer, outbound.packet.is_answer());
  last.outbound = std::move(outbound);
  last.done = done;
  const bool from_handler = last.outbound.from_device && !last.outbound.slot.exists();
  last.outbound.at_once = last.outbound.at_once || from_handler;  // a handler does not wait for the read
  if (last.outbound.at_once || portals::is_short_reply(last.outbound.packet)) copy_payload(last);
  return from_handler;
}

bool ShmTransport::send_small(const nic::QuickPut& put, uint64_t message) {
  Peer& peer = *peers_[put.target.value];
  if (put.length > small_bytes || !peer.attached || peer.lost || !peer.waiting.empty() || peer.writer.stopped())
    return false;
  if (!write_small(peer, put, message, nic::AckRequest::none)) return false;
  peer.segment.header().doorbell.ring(peer.needs_fence);
  return true;
}

ShmTransport::Waiting& ShmTransport::enqueue(Peer& peer, bool is_answer) {
  if (!peer.waits() && !peer.card_awaited) {
    ++waiting_peers_;
    retry_at_ = retry_pause_ = Time{};
  }
  return (is_answer ? peer.answers : peer.waiting).emplace_back();
}

// Copies a payload that must be read before send() returns.
void ShmTransport::copy_payload(Waiting& waiting) {
  nic::PayloadRef& payload = waiting.outbound.packet.payload;
  if (payload.length == 0) return;
  waiting.payload_copy.resize(payload.length);
  copy_out(waiting.payload_copy.data(), waiting.outbound, 0, payload.length);
  waiting.outbound.pieces.clear();
  payload.bytes = waiting.payload_copy.data();
}

ShmTransport::WriteResult ShmTransport::write(Peer& peer, nic::Send& outbound, uint64_t& done) {
  const nic::Packet& packet = outbound.packet;
  const uint64_t length = packet.payload.length;
  const bool can_be_stopped = !packet.is_answer();
  if (can_be_stopped && peer.writer.stopped()) return WriteResult::some;
  const bool is_whole_put = packet.operation == nic::Operation::put && length == packet.message_length;
  if (is_whole_put && length <= small_bytes && outbound.pieces.empty()) {
    return write_small(peer, quick_of(packet), packet.message, packet.fields.ack_request) ? WriteResult::all
                                                                                          : WriteResult::some;
  }
  const bool may_lend = done == 0 && outbound.pieces.empty() && !outbound.at_once && !portals::is_short_reply(packet);
  if (may_lend && can_lend(peer, packet.payload)) {
    return lend(peer, outbound) ? WriteResult::lent : WriteResult::some;
  }
  do {
    const uint64_t now = std::min(part_bytes, length - done);
    if (can_be_stopped && peer.writer.stopped()) return WriteResult::some;
    if (!write_part(peer, outbound, done, now)) return WriteResult::some;
    done += now;
  } while (done < length);
  return WriteResult::all;
}

bool ShmTransport::write_small(Peer& peer, const nic::QuickPut& put, uint64_t message, nic::AckRequest ack) {
  const ChannelWriter::Room room = peer.writer.reserve(0);
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
  peer.writer.publish(room);
  return true;
}

bool ShmTransport::write_part(Peer& peer, const nic::Send& outbound, uint64_t done, uint64_t length) {
  const ChannelWriter::Room room = peer.writer.reserve(static_cast<uint32_t>(sizeof(PacketRecord) + length));
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
  peer.writer.publish(room, cell);
  return true;
}

bool ShmTransport::write_loan_return(Peer& peer, uint64_t loan) {
  const ChannelWriter::Room room = peer.writer.reserve(0);
  if (room.cell == nullptr) return false;
  Cell cell;
  cell.kind = CellKind::loan_return;
  cell.message = loan;
  peer.writer.publish(room, cell);
  peer.segment.header().doorbell.ring(peer.needs_fence);
  return true;
}

// Sends what waits for room or for the peer's go: answers first, each queue in its order. Returns whether anything
// left.
bool ShmTransport::flush(uint32_t rank) {
  Peer& peer = *peers_[rank];
  if (!peer.waits()) return false;
  bool moved = flush(peer, peer.answers);
  moved = flush(peer, peer.waiting) || moved;
  if (!peer.waits()) --waiting_peers_;
  if (moved) peer.segment.header().doorbell.ring(peer.needs_fence);
  return moved;
}

bool ShmTransport::flush(Peer& peer, std::deque<Waiting>& queue) {
  bool moved = false;
  while (!queue.empty()) {
    Waiting& first = queue.front();
    const uint64_t done_before = first.done;
    bool is_read = false;
    if (first.returned_loan != no_loan) {
      if (!write_loan_return(peer, first.returned_loan)) break;
    } else {
      const WriteResult result = write(peer, first.outbound, first.done);
      if (result == WriteResult::some) {
        moved = moved || first.done > done_before;
        break;
      }
      is_read = result == WriteResult::all;
    }
    moved = true;
    const SendCompletion completion = completion_of(first.outbound);
    queue.pop_front();
    if (is_read) client_.sent(completion);
  }
  return moved;
}

bool ShmTransport::poll() {
  bool happened = false;
  attach_new_peers();
  happened = lose_noted() || happened;
  for (size_t i = 0; i < readable_peers_.size(); ++i) {
    const uint32_t rank = readable_peers_[i];
    Peer& peer = *peers_[rank];
    if (peer.lost) continue;
    happened = read_cells(rank) || happened;
    if (peer.open_loans > 0) happened = help_copy(peer) || happened;
    if (peer.shared_copy.is_active()) happened = end_shared_copy(rank) || happened;
  }
  if (waiting_peers_ == 0) return happened;
  if (!contacts_.empty()) happened = check_awaited() || happened;
  if (waiting_peers_ == contacts_.count()) return happened;
  bool moved = false;
  for (const uint32_t rank : readable_peers_) moved = flush(rank) || moved;
  const Time now = monotonic_now();
  if (moved) retry_pause_ = {};
  if (!moved && now < retry_at_) return happened;
  retry_pause_ = std::clamp(retry_pause_ * 2, retry_pause_first, retry_pause_max);
  retry_at_ = now + retry_pause_;
  return happened || moved;
}

bool ShmTransport::read_cells(uint32_t rank) {
  Peer& peer = *peers_[rank];
  int cells = 0;
  for (; cells < cells_per_poll && !peer.lost && !peer.reader.empty(); ++cells) {
    handle_cell(rank, peer.reader.front());
    peer.reader.release();
  }
  return cells > 0;
}

void ShmTransport::handle_cell(uint32_t rank, const Cell& cell) {
  switch (cell.kind) {
    case CellKind::small: {
      if (cell.length > small_bytes || cell.ack_request > static_cast<uint8_t>(nic::AckRequest::oc_ack)) break;
      nic::Packet& packet = small_packet_;
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
    case CellKind::lent: return handle_packet(rank, cell);
    case CellKind::loan_return: return end_loan(rank, cell.message);
    case CellKind::heap: return map_heap(*peers_[rank]);
    case CellKind::bye: return lose(rank);
    default: break;
  }
  ++refused_cells_;
}

void ShmTransport::handle_packet(uint32_t rank, const Cell& cell) {
  const Peer& peer = *peers_[rank];
  const bool lent = cell.kind == CellKind::lent;
  const uint64_t length = lent ? cell.hdr_data : cell.remote_offset;
  const uint64_t bulk_payload_bytes = lent ? 0 : length;
  const uint8_t* const bulk = bulk_payload_bytes > ChannelMemory::bulk_bytes
                                  ? nullptr
                                  : peer.reader.bulk(cell.match_bits, sizeof(PacketRecord) + bulk_payload_bytes);
  nic::Packet packet;
  if (bulk != nullptr) std::memcpy(static_cast<void*>(&packet), bulk, sizeof packet);
  if (bulk == nullptr || !plausible(packet)) {
    ++refused_cells_;
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
  if (lent) return_loan(nic::Rank{rank}, cell.message);
}

void ShmTransport::return_loan(nic::Rank rank, uint64_t loan) {
  Peer& peer = *peers_[rank.value];
  if (peer.shared_copy.is_active()) {
    peer.loans_to_return.push_back(loan);
    return;
  }
  if (!peer.attached || peer.lost || (peer.answers.empty() && write_loan_return(peer, loan))) return;
  enqueue(peer, true).returned_loan = loan;
}

void ShmTransport::set_stopped(nic::Rank rank, bool stopped) {
  Peer& peer = *peers_[rank.value];
  peer.reader.set_stopped(stopped);
  if (!stopped && peer.attached && !peer.lost) peer.segment.header().doorbell.ring(peer.needs_fence);
}

void ShmTransport::end_loan(uint32_t rank, uint64_t loan) {
  Peer& peer = *peers_[rank];
  if (loan >= peer.loans.size() || !peer.loans[loan].open) {
    ++refused_cells_;
    return;
  }
  peer.loans[loan].open = false;
  --open_loans_;
  --peer.open_loans;
  client_.sent(peer.loans[loan].completion);
}

}  // namespace spinloom::live
