// The part of ShmTransport for long payloads: finds out which memory can be read, and copies out of it.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <tuple>
#include <utility>

#include "live/shm/shm_transport.hpp"

namespace spinloom::live {
namespace {

// The longest part of a copy by both ends. Measured: longer parts gain nothing, and keep an end from its other work.
constexpr uint64_t part_max_bytes = 256 << 10;
constexpr int last_part_polls = 2000;  // polls while waiting for the peer's last part of the previous copy
// The shortest copy for which it pays to wake a sleeping caller of the peer for help.
constexpr uint64_t wake_from_bytes = 256 << 10;
constexpr uint64_t page_bytes = 4096;

}  // namespace

// True if the payload can be lent to the peer. If our heap was made after the peer attached, the peer is told of it
// here. Until the peer has mapped the heap, payloads go the other ways.
bool ShmTransport::can_lend(Peer& peer, const nic::PayloadRef& payload) {
  if (payload.length < std::min(options_.lend_from_bytes, options_.lend_heap_from_bytes)) return false;
  const peer::Reach reads = peer.writer.reader_reach();
  if (peer.in_process && includes(reads, peer::Reach::memory)) return payload.length >= options_.lend_heap_from_bytes;
  if (heap_.is_shared(payload.bytes, payload.length)) {
    if (includes(reads, peer::Reach::heap)) return payload.length >= options_.lend_heap_from_bytes;
    announce_heap(peer);
  }
  return payload.length >= options_.lend_from_bytes && includes(reads, peer::Reach::memory);
}

void ShmTransport::announce_heap(Peer& peer) {
  if (peer.heap_announced || !own_.publish_heap()) return;
  const ChannelWriter::Room room = peer.writer.reserve(0);
  if (room.cell == nullptr) return;  // there is no room now; it is tried again
  Cell cell;
  cell.kind = CellKind::heap;
  peer.writer.publish(room, cell);
  peer.segment.header().doorbell.ring(peer.needs_fence);  // the payload itself may find no room
  peer.heap_announced = true;
}

bool ShmTransport::lend(Peer& peer, const nic::Send& outbound) {
  const ChannelWriter::Room room = peer.writer.reserve(sizeof(PacketRecord));
  if (room.cell == nullptr) return false;
  uint32_t loan = 0;
  while (loan < peer.loans.size() && peer.loans[loan].open) ++loan;
  if (loan == peer.loans.size()) peer.loans.emplace_back();
  peer.loans[loan] = {true, completion_of(outbound), outbound.packet.payload.length};
  ++open_loans_;
  ++peer.open_loans;
  PacketRecord record = outbound.packet;
  record.payload = {};
  std::memcpy(room.bulk, &record, sizeof record);
  Cell cell;
  cell.kind = CellKind::lent;
  cell.message = loan;
  cell.match_bits = room.bulk_offset;
  cell.remote_offset = reinterpret_cast<uint64_t>(outbound.packet.payload.bytes);
  cell.hdr_data = outbound.packet.payload.length;
  peer.writer.publish(room, cell);
  return true;
}

void ShmTransport::offer_help(uint32_t rank) {
  Peer& peer = *peers_[rank];
  if (!peer.attached || options_.copy_mode == CopyMode::heap || options_.copy_mode == CopyMode::twice) return;
  peer.copy_helper = peer::CopyHelper(peer.channel_out->shared_copy);
  if (peer.memory.try_writing()) peer.copy_helper.announce();
}

// Maps the heap of a peer, once, as soon as the peer has one.
void ShmTransport::map_heap(Peer& peer) {
  if (peer.in_process) return;  // its heap is that of this process
  if (!peer.attached || peer.heap_tried || options_.copy_mode == CopyMode::single ||
      options_.copy_mode == CopyMode::twice)
    return;
  const SegmentHeader& header = peer.segment.header();
  SharedHeap::Location place;
  place.bytes = header.heap_bytes.load(std::memory_order_acquire);
  if (place.bytes == 0) return;
  place.base = header.heap_base;
  place.inode = header.heap_inode;
  place.file = header.heap_file;
  peer.heap_tried = true;
  if (peer.memory.map_heap(place, options_.direct != DirectMode::never))
    peer.reader.set_reader_reach(peer.memory.reach());
}

Status ShmTransport::fetch(nic::Rank peer, uint64_t address, uint8_t* to, uint64_t length) {
  return peers_[peer.value]->memory.read(address, to, length);
}

bool ShmTransport::fetch_with_help(nic::Rank rank, uint64_t address, uint8_t* to, uint64_t length, uint64_t token) {
  Peer& peer = *peers_[rank.value];
  if (length < options_.help_from_bytes || !peer.attached || peer.lost || peer.memory.is_mapped(address, length) ||
      !includes(peer.memory.reach(), peer::Reach::memory) || !peer.shared_copy.has_helper()) {
    return false;
  }
  for (int tries = 0; peer.shared_copy.is_active() && !end_shared_copy(rank.value); ++tries) {
    if (tries == last_part_polls) return false;
    relax();
  }
  Doorbell& bell = peer.segment.header().doorbell;
  const bool polls = bell.somebody_polls();
  if (!polls && (length < wake_from_bytes || !bell.callers_sleep())) return false;
  const uint64_t shortest = options_.help_from_bytes / 3 * 2;
  peer.shared_copy.begin(
      {address, reinterpret_cast<uint64_t>(to), length},
      std::clamp(length / 4 / page_bytes * page_bytes, shortest, std::max(shortest, part_max_bytes)));
  if (!polls) bell.wake();
  ++shared_copies_;
  peer.shared_copy_token = token;
  peer.shared_copy.read_parts(peer.memory);
  std::ignore = end_shared_copy(rank.value);
  return true;
}

bool ShmTransport::end_shared_copy(uint32_t rank) {
  Peer& peer = *peers_[rank];
  if (!peer.shared_copy.is_active()) return false;
  const auto succeeded = peer.shared_copy.finish(peer.memory, peer.lost);
  if (!succeeded) return false;
  --shared_copies_;
  client_.fetched(peer.shared_copy_token, *succeeded);
  for (const uint64_t loan : std::exchange(peer.loans_to_return, {})) return_loan(nic::Rank{rank}, loan);
  return true;
}

// Copies one part of the payload that this peer is copying out of our memory. Returns true if there was one.
bool ShmTransport::help_copy(Peer& peer) {
  SegmentHeader& header = peer.segment.header();
  if (!peer.copy_helper.help(peer.memory, [&] { return header.closed.load() == 0; })) return false;
  ++helped_parts_;
  header.doorbell.ring(peer.needs_fence);
  return true;
}

}  // namespace spinloom::live
