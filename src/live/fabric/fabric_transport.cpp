// The sending side: messages, loans, notes, and peers that are lost.
#include "live/fabric/fabric_transport.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/log.hpp"
#include "live/fabric/fabric_peer.hpp"
#include "live/node/futex.hpp"
#include "nic/wire/packet_format.hpp"

namespace spinloom::live {
namespace {

constexpr size_t window = 256;                    // packets to a peer that are not acknowledged
constexpr uint64_t window_bytes = 2 << 20;        // bytes of packets to a peer that are not acknowledged
constexpr size_t waiting_max = 64;                // more packets that wait for a peer count as congestion
constexpr uint64_t lend_from_bytes = 32 << 10;    // shorter payloads are copied into messages
constexpr Time look_again{1'000'000'000};         // 1 ms: when to poll for something that wakes nobody
constexpr Time look_soon{20'000'000};  // 20 us: the same over a port without a descriptor, after recent news
constexpr Time lively{10'000'000'000};  // 10 ms: news are recent for this time
constexpr Time goodbye_max{200'000'000'000};  // 200 ms

}  // namespace

bool FabricTransport::has_window(const Peer& peer) {
  return peer.unacknowledged.size() < window && peer.unacknowledged_bytes < window_bytes;
}

FabricTransport::FabricTransport(TransportClient& client, std::unique_ptr<FabricPort> port, uint32_t rank,
                                 const Secret& secret, const std::vector<bool>& reached, Arm arm,
                                 const FabricPatience& patience)
    : client_(client),
      port_(std::move(port)),
      rank_{rank},
      secret_{secret[0], secret[1]},
      arm_(std::move(arm)),
      patience_(patience),
      peers_(reached.size()),
      reads_(*port_) {
  SPL_ASSERT(patience.is_consistent(), "a rank that fetches would be lost by others");
  for (uint32_t peer = 0; peer < peers_.size(); ++peer) {
    if (!reached[peer] || peer == rank) continue;
    peers_[peer] = std::make_unique<Peer>();
    peers_[peer]->rank = nic::Rank{peer};
  }
}

FabricTransport::~FabricTransport() = default;

FabricTransport::Peer* FabricTransport::find(nic::Rank rank) const {
  return rank.value < peers_.size() ? peers_[rank.value].get() : nullptr;
}

bool FabricTransport::send(nic::Send& outbound) {
  Peer* const peer = find(outbound.packet.target);
  if (peer == nullptr) client_.lost(outbound.packet.target);
  if (peer == nullptr || peer->lost) return true;
  begin_contact(*peer);
  Waiting waiting(std::move(outbound));
  waiting.as_pieces = waiting.must_copy() || waiting.copied;
  const bool is_answer = waiting.outbound.packet.is_answer();
  std::deque<Waiting>& queue = is_answer ? peer->answers : peer->waiting;
  const bool may_leave = queue.empty() && (is_answer || !peer->told_to_stop);
  if (may_leave && transmit(*peer, waiting)) return waiting.as_pieces;
  if (waiting.must_copy()) waiting.keep();
  if (!peer->waits()) ++waiting_;
  const bool copied = waiting.copied;
  queue.push_back(std::move(waiting));
  return copied;
}

// Returns true if the whole packet has left. Then `as_pieces` is true if its bytes have been read; if not, they are
// lent.
bool FabricTransport::transmit(Peer& peer, Waiting& waiting) {
  if (!waiting.as_pieces) {
    waiting.as_pieces = waiting.outbound.packet.payload.length < lend_from_bytes || !port_->has_reads();
  }
  if (!waiting.as_pieces) {
    bool failed = false;
    if (transmit_loan(peer, waiting, failed)) return true;
    if (!failed) return false;
    waiting.as_pieces = true;  // its memory cannot be lent
  }
  return transmit_pieces(peer, waiting);
}

bool FabricTransport::transmit_loan(Peer& peer, Waiting& waiting, bool& failed) {
  if (!has_window(peer)) return false;
  nic::Packet packet = waiting.outbound.packet;
  if (!waiting.region) {
    const auto region = port_->lend(packet.payload.bytes, packet.payload.length);
    failed = !region.ok();
    if (failed) return false;
    waiting.region = *region;
  }
  FabricPort::Slot* const slot = open_slot(peer, wire::EnvelopeKind::loan, 0);
  if (slot == nullptr) return false;
  const wire::Loan loan{peer.next_loan, packet.payload.length, waiting.region->key, waiting.region->address};
  packet.payload.length = 0;
  wire::append_loan(loan, slot->bytes);
  wire::encode(packet, slot->bytes);
  const uint64_t sequence = peer.next_sequence;
  if (!close_slot(peer, *slot)) return false;
  ++counts_.lent;
  peer.unacknowledged.push_back({sequence, 0, false});
  peer.lent[peer.next_loan++] = {*waiting.region, completion_of(waiting.outbound), loan.length};
  return true;
}

bool FabricTransport::transmit_pieces(Peer& peer, Waiting& waiting) {
  const nic::Packet& packet = waiting.outbound.packet;
  do {
    if (!has_window(peer)) return false;
    FabricPort::Slot* const slot = open_slot(peer, wire::EnvelopeKind::packet, 0);
    if (slot == nullptr) return false;
    nic::Packet piece = packet;
    piece.offset += waiting.done;
    piece.payload.bytes += waiting.done;
    const size_t room = port_->message_bytes() - wire::envelope_header_bytes - wire::envelope_tag_bytes -
                        wire::packet_header_bytes(piece);
    piece.payload.length = nic::cut(piece.offset, packet.payload.length - waiting.done, room);
    wire::encode(piece, slot->bytes);
    const uint64_t sequence = peer.next_sequence;
    if (!close_slot(peer, *slot)) return false;
    peer.unacknowledged.push_back({sequence, piece.payload.length, packet.operation == nic::Operation::ack});
    peer.unacknowledged_bytes += piece.payload.length;
    waiting.done += piece.payload.length;
  } while (waiting.done < packet.payload.length);
  return true;
}

// Begins a message to this peer with its header. Null: no message can go now.
FabricPort::Slot* FabricTransport::open_slot(Peer& peer, wire::EnvelopeKind kind, uint16_t flags) {
  FabricPort::Slot* const slot = port_->slot(peer.rank);
  if (slot == nullptr) return nullptr;
  wire::EnvelopeHeader header;
  header.kind = kind;
  header.flags = static_cast<uint16_t>(flags | (peer.stopped ? wire::EnvelopeHeader::stop : 0));
  header.source = rank_;
  header.target = peer.rank;
  header.sequence = peer.next_sequence;
  header.received = peer.expected;
  header.resume_count = peer.resume_count;
  std::ignore = wire::begin_envelope(header, slot->bytes);
  return slot;
}

// Seals and sends the message. False: it cannot go now, and has not gone.
bool FabricTransport::close_slot(Peer& peer, FabricPort::Slot& slot) {
  wire::seal_envelope(secret_, 0, slot.bytes);
  if (!port_->send(slot)) {
    port_->release_slot(slot);
    return false;
  }
  ++counts_.messages;
  ++peer.next_sequence;
  peer.acknowledged = peer.expected;
  peer.acknowledge_at = Time::never();
  begin_contact(peer);
  return true;
}

// Starts the time within which the peer owes us signs of life.
void FabricTransport::begin_contact(Peer& peer) {
  if (std::exchange(peer.in_contact, true)) return;
  peer.heard_at = monotonic_now();
  next_deadline_ = std::min(next_deadline_, peer.heard_at + patience_.keepalive);
}

// Sends the peer an acknowledgement, and whether it must stop. False: it could not go now; check_deadlines() tries
// again.
bool FabricTransport::send_note(Peer& peer, uint16_t flags) {
  FabricPort::Slot* const slot = open_slot(peer, wire::EnvelopeKind::note, flags);
  if (slot == nullptr || !close_slot(peer, *slot)) {
    peer.acknowledge_at = std::min(peer.acknowledge_at, now_ + look_again);
    next_deadline_ = std::min(next_deadline_, peer.acknowledge_at);
    return false;
  }
  ++counts_.notes;
  return true;
}

// Sends the peer the names of its loans that this process does not need any more.
void FabricTransport::send_loan_returns(Peer& peer) {
  while (!peer.returns.empty()) {
    FabricPort::Slot* const slot = open_slot(peer, wire::EnvelopeKind::loan_returned, 0);
    if (slot == nullptr) return;
    wire::append_loan_id(peer.returns.front(), slot->bytes);
    if (!close_slot(peer, *slot)) return;
    peer.returns.pop_front();
  }
}

void FabricTransport::flush(Peer& peer) {
  if (peer.lost || !peer.waits()) return;
  send_loan_returns(peer);
  for (auto* const queue : {&peer.answers, &peer.waiting}) {
    while (!queue->empty() && (queue == &peer.answers || !peer.told_to_stop) && transmit(peer, queue->front())) {
      const Waiting gone = std::move(queue->front());
      queue->pop_front();
      if (gone.as_pieces && !gone.copied) client_.sent(completion_of(gone.outbound));
    }
  }
  if (!peer.waits()) --waiting_;
}

void FabricTransport::flush_all() {
  if (waiting_ == 0) return;
  for (const auto& peer : peers_) {
    if (peer) flush(*peer);
  }
}

void FabricTransport::check_deadlines(Time now) {
  next_deadline_ = Time::never();
  for (const auto& one : peers_) {
    if (!one || one->lost || !one->in_contact) continue;
    Peer& peer = *one;
    if (peer.acknowledge_at <= now) std::ignore = send_note(peer, 0);
    const bool silent = peer.probed_at > peer.heard_at && now - peer.heard_at >= patience_.silence;
    const bool gap = !peer.early.empty() && now - peer.gap_since >= patience_.gap;
    if (silent || gap) {
      warn_lost(peer.rank, silent ? "it does not answer" : "a message is missing");
      lose(peer);
      continue;
    }
    if (now - std::max(peer.heard_at, peer.probed_at) >= patience_.keepalive) {
      peer.probed_at = now;  // even if it cannot be asked now: a peer that takes nothing is silent, too
      std::ignore = send_note(peer, wire::EnvelopeHeader::ask);
    }
    next_deadline_ =
        std::min({next_deadline_, peer.acknowledge_at, std::max(peer.heard_at, peer.probed_at) + patience_.keepalive});
    if (!peer.early.empty()) next_deadline_ = std::min(next_deadline_, peer.gap_since + patience_.gap);
  }
}

// Prints why a peer is given up. Nothing is printed if nothing was on its way to the peer: it may have ended as
// planned.
void FabricTransport::warn_lost(nic::Rank rank, const std::string& why) const {
  const Peer* const peer = find(rank);
  if (peer == nullptr || peer->lost || outstanding(rank).packets == 0) return;
  log::emit(log::Level::warning, "live",
            text("rank ", rank, " is given up: ", why, " (", port_->describe(), ", ", port_->describe(rank), ")"));
}

void FabricTransport::set_stopped(nic::Rank rank, bool stopped) {
  Peer* const peer = find(rank);
  if (peer == nullptr || peer->lost || peer->stopped == stopped) return;
  peer->stopped = stopped;
  begin_contact(*peer);
  std::ignore = send_note(*peer, 0);
}

void FabricTransport::note_resumed(nic::Rank rank) {
  if (Peer* const peer = find(rank)) ++peer->resume_count;
}

bool FabricTransport::congested(nic::Rank rank) const {
  const Peer* const peer = find(rank);
  return peer != nullptr && !peer->lost && peer->waiting.size() > waiting_max;
}

bool FabricTransport::drained() const {
  if (!inbox_.empty() || !reads_.empty() || waiting_ > 0) return false;
  return std::all_of(peers_.begin(), peers_.end(), [](const auto& peer) {
    return !peer || peer->lost || (peer->unacknowledged.empty() && peer->lent.empty());
  });
}

Outstanding FabricTransport::outstanding(nic::Rank rank) const {
  const Peer* const peer = find(rank);
  if (peer == nullptr) return {};
  if (peer->lost) return peer->outstanding_at_loss;
  Outstanding totals;
  totals.progress = peer->peer_resume_count;
  for (const auto& sent : peer->unacknowledged) {
    ++totals.packets;
    totals.control_packets += sent.is_ack ? 1 : 0;
    totals.bytes += sent.is_ack ? 0 : sent.bytes;
  }
  for (const auto* const queue : {&peer->answers, &peer->waiting}) {
    for (const Waiting& waiting : *queue) waiting.count(totals);
  }
  for (const auto& [name, lent] : peer->lent) {
    ++totals.packets;
    totals.bytes += lent.bytes;
  }
  totals.packets += peer->returns.size();
  totals.control_packets += peer->returns.size();
  for (const auto& [address, borrowed] : peer->borrowed) totals.may_write = totals.may_write || borrowed.reads > 0;
  return totals;
}

void FabricTransport::lose(Peer& peer) {
  peer.outstanding_at_loss = outstanding(peer.rank);
  peer.outstanding_at_loss.is_lost = true;
  if (peer.waits()) --waiting_;
  peer.lost = true;
  client_.lost(peer.rank);
  for (const FabricRead& read : reads_.abandon(peer.rank)) end_read(read, false);
  for (auto* const queue : {&peer.answers, &peer.waiting}) {
    for (const Waiting& waiting : std::exchange(*queue, {})) {
      if (waiting.region) port_->end_loan(*waiting.region);
      if (!waiting.copied) client_.sent(completion_of(waiting.outbound));
    }
  }
  for (const auto& [name, lent] : std::exchange(peer.lent, {})) {
    port_->end_loan(lent.region);
    client_.sent(lent.completion);
  }
  peer.unacknowledged.clear();
  peer.early.clear();
  peer.borrowed.clear();
  peer.returns.clear();
}

std::string FabricTransport::describe(nic::Rank rank) {
  return text(port_->describe(), ", ", port_->describe(rank), ", messages of up to ", port_->message_bytes(),
              " B, longer ones ",
              port_->has_reads() ? "read from the sender's memory, which is registered for each" : "in pieces");
}

Time FabricTransport::timer() const {
  if (!inbox_.empty() || !failed_.empty()) return Time{};
  const bool looks = waiting_ > 0 || !port_->idle() || !reads_.empty() || port_->descriptor() < 0;
  if (!looks) return next_deadline_;
  const bool soon = port_->descriptor() < 0 && now_ - last_event_at_ < lively;
  return std::min(next_deadline_, now_ + (soon ? look_soon : look_again));
}

void FabricTransport::arm() {
  port_has_events_ = !port_->arm();
  if (!port_has_events_ && port_->descriptor() >= 0 && !armed_.exchange(true)) arm_(port_->descriptor());
}

// Waits, not longer than `goodbye_max`, until the last messages have left and every peer has been told. Then ends all
// loans.
void FabricTransport::say_goodbye() {
  std::vector<Peer*> untold;
  for (const auto& peer : peers_) {
    if (peer && peer->in_contact && !peer->lost) untold.push_back(peer.get());
  }
  for (const Time until = monotonic_now() + goodbye_max; monotonic_now() < until; std::this_thread::yield()) {
    std::erase_if(untold, [&](Peer* peer) {
      send_loan_returns(*peer);
      return peer->returns.empty() && send_note(*peer, wire::EnvelopeHeader::bye);
    });
    if (untold.empty() && port_->idle()) break;
    std::ignore = collect(true);
    inbox_.clear();
  }
  for (const auto& peer : peers_) {
    if (!peer) continue;
    for (const auto& [name, lent] : peer->lent) port_->end_loan(lent.region);
  }
}

}  // namespace spinloom::live
