// The part of ShmTransport for messages that need no turn of their target: they are done in its memory.
#include <atomic>
#include <cstring>
#include <optional>
#include <tuple>
#include <utility>

#include "live/shm/shm_transport.hpp"
#include "portals/interface/host_atomic.hpp"

namespace spinloom::live {
namespace {

using Gate = DirectGate<SharedWord>;

// When so many messages in a row have found a caller of the target waiting, the next `trusted_messages` do not look as
// long as the target answers.
constexpr uint32_t finds_until_trust = 16;
constexpr uint32_t trusted_messages = 15;
constexpr uint64_t direct_max_bytes = 64 << 10;  // a target that closes its gate waits no longer than for this copy

// The first entry that a message with these fields matches; null if it is not among those published.
const PublishedEntry* match(const PublishedPortal& portal, uint32_t rank, uint64_t match_bits) {
  for (uint32_t i = 0; i < portal.entries_count && i < PublishedPortal::entries_max; ++i) {
    const PublishedEntry& entry = portal.entries[i];
    const bool from_us = entry.match_rank == nic::Rank::any().value || entry.match_rank == rank;
    if (from_us && ((match_bits ^ entry.match_bits) & ~entry.ignore_bits) == 0) return &entry;
  }
  return nullptr;
}

}  // namespace

// Says what a message does at its target.
struct ShmTransport::Access {
  nic::Operation operation = nic::Operation::put;
  uint32_t portal = 0;
  uint64_t match_bits = 0;
  uint64_t remote_offset = 0;
  const uint8_t* from = nullptr;  // put, atomic: the bytes
  uint64_t length = 0;
  const nic::Request* request = nullptr;  // atomic: the operation
  std::vector<uint8_t>* into = nullptr;   // get, fetch_atomic: where the target's bytes go
  bool is_acknowledged = true;  // the entry lets acknowledgements go
};

// True if packets are quicker, because a caller of the peer waits for them. The word that tells is written whenever a
// caller begins or ends to wait, so each look at it costs a cache miss then: a peer that has always waited lately, and
// has sent something since our last message, is trusted to wait for some messages more that need no answer. What the
// helper of a peer answers says nothing of its callers.
bool ShmTransport::takes_packets_at_once(Peer& peer, bool is_answered) const {
  if (options_.direct == DirectMode::always) return false;
  const bool answers = std::exchange(peer.cells_when_asked, peer.reader.released()) != peer.reader.released();
  if (peer.trusted_messages > 0 && answers && !is_answered) {
    --peer.trusted_messages;
    return true;
  }
  if (peer.segment.header().direct.waits.load() == 0) {
    peer.found_waiting = 0;
    peer.trusted_messages = 0;
    return false;
  }
  peer.found_waiting = std::min(peer.found_waiting + 1, finds_until_trust);
  if (peer.found_waiting == finds_until_trust) peer.trusted_messages = trusted_messages;
  return true;
}

// Looks whether the peer has settled before it looks for packets: what the peer had sent by then is there.
bool ShmTransport::may_access_directly(Peer& peer, bool is_answered) const {
  return options_.direct != DirectMode::never && peer.attached && !peer.lost && !peer.loss_noted && !peer.waits() &&
         peer.segment.header().direct.portals_used.load() > 0 && !takes_packets_at_once(peer, is_answered) &&
         peer.segment.header().closed.load() == 0 && peer.writer.is_settled() && peer.reader.empty();
}

bool ShmTransport::access(Peer& peer, Access& access) {
  if (access.length > direct_max_bytes) return false;
  DirectMemory& direct = peer.segment.header().direct;
  uint32_t index = 0;
  const auto used = static_cast<uint32_t>(std::min<uint64_t>(direct.portals_used.load(), DirectMemory::portals_max));
  while (index < used && direct.portals[index].portal.load() != access.portal) ++index;
  if (index == used) return false;
  const PublishedPortal& portal = direct.portals[index];
  SharedWord& slot = peer.segment.channel_of(rank_)->direct_slot;
  if (!Gate::enter(portal.gate, slot, index + 1)) return false;
  const PublishedEntry* const entry = match(portal, rank_, access.match_bits);
  const bool puts = access.operation != nic::Operation::get;
  const bool gets = access.operation == nic::Operation::get || access.operation == nic::Operation::fetch_atomic;
  const bool is_taken = entry != nullptr && portal.portal.load() == access.portal &&
                        (entry->user == nic::any_user || entry->user == cards_[rank_].user) &&
                        (!puts || (entry->options & PublishedEntry::op_put) != 0) &&
                        (!gets || (entry->options & PublishedEntry::op_get) != 0) &&
                        access.remote_offset <= entry->length &&
                        access.length <= entry->length - access.remote_offset &&
                        move(peer, portal, entry->start + access.remote_offset, access);
  const bool counts = is_taken && (entry->options & PublishedEntry::counts) != 0;
  if (counts) {
    const bool bytes = (entry->options & PublishedEntry::counts_bytes) != 0;
    direct.counts[index][static_cast<size_t>(entry - portal.entries.data())].add(bytes ? access.length : 1);
    direct.counted.store(1);
  }
  if (is_taken) access.is_acknowledged = (entry->options & PublishedEntry::ack_disable) == 0;
  Gate::leave(slot);
  if (counts) ring_for_counts(peer);
  direct_accesses_ += is_taken ? 1 : 0;
  return is_taken;
}

// Whoever makes a call takes the counts then, so only callers that sleep are woken, and a helper that callers rely on.
void ShmTransport::ring_for_counts(Peer& peer) {
  SegmentHeader& header = peer.segment.header();
  header.doorbell.ring_callers(peer.needs_fence);
  if (header.direct.helper_counts.load() != 0) header.doorbell.ring(peer.needs_fence);
}

// Returns where the peer's bytes are in this process; null: nowhere. Maps its heap first, once there is one.
uint8_t* ShmTransport::place_at(Peer& peer, uint64_t address, uint64_t length) {
  if (!peer.heap_tried) map_heap(peer);
  return peer.memory.place_of(address, length);
}

// Moves the bytes of a message, between the gate's enter() and leave(). False: nothing has changed, or for a put by the
// kernel perhaps some of the bytes, which then come again by packets. Those fail if a part of the memory is not there.
bool ShmTransport::move(Peer& peer, const PublishedPortal& portal, uint64_t address, Access& access) {
  uint8_t* place = nullptr;
  const bool heap_is_shared =
      portal.heap_is_shared != 0 && portal.heap_changes == peer.segment.header().direct.heap_changes.load();
  if (heap_is_shared && options_.copy_mode != CopyMode::single && options_.copy_mode != CopyMode::twice)
    place = place_at(peer, address, access.length);
  const bool is_atomic = access.operation == nic::Operation::atomic || access.operation == nic::Operation::fetch_atomic;
  if (is_atomic) {
    nic::ApplyAtomic apply;
    apply.operation = access.request->atomic;
    apply.datatype = access.request->datatype;
    apply.operand = {access.request->operand[0], access.request->operand[1], access.request->requested_bytes};
    apply.host = place;
    apply.source = {nic::PayloadRef::Space::local, access.from, access.length};
    if (place == nullptr || !portals::is_indivisible(apply)) return false;
    if (access.into != nullptr) {
      access.into->resize(access.length);
      apply.before = access.into->data();
    }
    std::ignore = portals::perform_indivisibly(apply);
    return true;
  }
  const bool gets = access.operation == nic::Operation::get;
  if (gets) access.into->resize(access.length);
  uint8_t* const into = gets ? access.into->data() : nullptr;
  if (place == nullptr) {
    const bool kernel_may = options_.copy_mode == CopyMode::automatic || options_.copy_mode == CopyMode::single;
    const bool by_kernel =
        !peer.in_process && kernel_may && !peer.kernel_refuses && options_.direct >= DirectMode::automatic;
    if (!by_kernel) return false;
    if (access.length == 0) return true;
    if (gets) return peer.memory.read(address, into, access.length).ok();
    const bool has_written = peer.memory.write(address, access.from, access.length).ok();
    if (!has_written) peer.kernel_refuses = !peer.memory.try_writing().ok();
    return has_written;
  }
  if (gets && access.length > 0) std::memcpy(into, place, access.length);
  if (gets || access.length == 0) return true;
  if (access.length == sizeof(uint64_t) &&
      address % sizeof(uint64_t) == 0) {  // whoever only looks sees all of a word or none
    uint64_t word = 0;
    std::memcpy(&word, access.from, sizeof word);
    std::atomic_ref(*reinterpret_cast<uint64_t*>(place)).store(word, std::memory_order_release);
  } else {
    std::memcpy(place, access.from, access.length);
  }
  return true;
}

bool ShmTransport::put_directly(const nic::QuickPut& put) {
  Peer& peer = *peers_[put.target.value];
  if (!may_access_directly(peer, false)) return false;
  Access one;
  one.portal = put.portal.value;
  one.match_bits = put.match_bits;
  one.remote_offset = put.remote_offset;
  one.from = put.bytes;
  one.length = put.length;
  return access(peer, one);
}

bool ShmTransport::access_directly(const nic::Send& send, DirectEnd& end) {
  const nic::Packet& packet = send.packet;
  Peer& peer = *peers_[packet.target.value];
  const bool is_whole = packet.is_header() && send.last && packet.is_last() && send.pieces.empty();
  const bool is_host_memory = !send.from_device && !send.slot.exists();
  if (!is_whole || !is_host_memory || packet.is_answer() || packet.missing != 0) return false;
  const bool gets = packet.operation == nic::Operation::get || packet.operation == nic::Operation::fetch_atomic;
  const bool is_answered = gets || packet.fields.ack_request != nic::AckRequest::none;
  if (!may_access_directly(peer, is_answered)) return false;
  Access one;
  one.operation = packet.operation;
  one.portal = packet.fields.portal_index;
  one.match_bits = packet.fields.match_bits;
  one.remote_offset = packet.fields.remote_offset;
  one.from = packet.payload.bytes;
  one.length = packet.operation == nic::Operation::get ? packet.fields.request.requested_bytes : packet.message_length;
  one.request = &packet.fields.request;
  one.into = gets ? &end.bytes : nullptr;
  if (!access(peer, one)) return false;
  nic::Packet& answer = end.answer;
  answer.source = packet.target;
  answer.target = packet.source;
  end.has_answer = is_answered;
  if (gets) {
    answer.operation = nic::Operation::reply;
    answer.answers = packet.fields.request.reply_to;
    answer.message_length = end.bytes.size();
    answer.fields.manipulated_bytes = end.bytes.size();
    answer.fields.remote_offset = packet.fields.remote_offset;
    return true;
  }
  answer.operation = nic::Operation::ack;
  answer.message = packet.message;
  if (!one.is_acknowledged) return true;
  answer.fields.ack_request = packet.fields.ack_request;
  answer.fields.portal_index = packet.fields.portal_index;
  answer.fields.remote_offset = packet.fields.remote_offset;
  answer.fields.manipulated_bytes = one.length;
  return true;
}

// A peer that we owe something has not been served.
void ShmTransport::note_settled() {
  for (const uint32_t rank : readable_peers_) {
    Peer& peer = *peers_[rank];
    if (!peer.lost && !peer.waits() && !peer.shared_copy.is_active()) peer.reader.note_settled();
  }
}

// A peer that we have lost because we cannot reach it may live, and be inside. One that is a thread of this process, or
// leaves the job, gets out by itself.
bool ShmTransport::has_ended(nic::Rank rank) const {
  const Peer& peer = *peers_[rank.value];
  if (peer.attached) return !peer.in_process && !peer.memory.process().is_alive();
  return peer.lost && peer.unreachable.empty();
}

}  // namespace spinloom::live
