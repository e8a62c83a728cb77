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
constexpr uint64_t window_bytes = 2 << 20;        // and their bytes
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
  SPL_ASSERT(patience.holds_together(), "a rank that fetches would be lost by others");
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
  begin_talk(*peer);
  Waiting one(std::move(outbound));
  one.as_pieces = one.must_copy() || one.copied;
  const bool is_answer = one.outbound.packet.is_answer();
  std::deque<Waiting>& queue = is_answer ? peer->answers : peer->waiting;
  const bool may_leave = queue.empty() && (is_answer || !peer->told_to_stop);
  if (may_leave && transmit(*peer, one)) return one.as_pieces;
  if (one.must_copy()) one.keep();
  if (!peer->waits()) ++waiting_;
  const bool copied = one.copied;
  queue.push_back(std::move(one));
  return copied;
}

// Returns true if the whole packet has left. Then `as_pieces` is true if its bytes have been read; if not, they are
// lent.
bool FabricTransport::transmit(Peer& peer, Waiting& one) {
  if (!one.as_pieces) {
    one.as_pieces = one.outbound.packet.payload.length < lend_from_bytes || !port_->has_reads();
  }
  if (!one.as_pieces) {
    bool failed = false;
    if (transmit_loan(peer, one, failed)) return true;
    if (!failed) return false;
    one.as_pieces = true;  // its memory cannot be lent
  }
  return transmit_pieces(peer, one);
}

bool FabricTransport::transmit_loan(Peer& peer, Waiting& one, bool& failed) {
  if (!has_window(peer)) return false;
  nic::Packet packet = one.outbound.packet;
  if (!one.place) {
    const auto place = port_->lend(packet.payload.bytes, packet.payload.length);
    failed = !place.ok();
    if (failed) return false;
    one.place = *place;
  }
  FabricPort::Slot* const slot = open_slot(peer, wire::EnvelopeKind::loan, 0);
  if (slot == nullptr) return false;
  const wire::Loan loan{peer.next_loan, packet.payload.length, one.place->key, one.place->address};
  packet.payload.length = 0;
  wire::append(loan, slot->bytes);
  wire::encode(packet, slot->bytes);
  const uint64_t sequence = peer.next_sequence;
  if (!close_slot(peer, *slot)) return false;
  ++counts_.lent;
  peer.unacknowledged.push_back({sequence, 0, false});
  peer.lent[peer.next_loan++] = {*one.place, reading_of(one.outbound), loan.length};
  return true;
}

bool FabricTransport::transmit_pieces(Peer& peer, Waiting& one) {
  const nic::Packet& packet = one.outbound.packet;
  do {
    if (!has_window(peer)) return false;
    FabricPort::Slot* const slot = open_slot(peer, wire::EnvelopeKind::packet, 0);
    if (slot == nullptr) return false;
    nic::Packet piece = packet;
    piece.offset += one.done;
    piece.payload.bytes += one.done;
    const size_t room = port_->message_bytes() - wire::envelope_header_bytes - wire::envelope_tag_bytes -
                        wire::packet_header_bytes(piece);
    piece.payload.length = std::min<uint64_t>(room, packet.payload.length - one.done);
    wire::encode(piece, slot->bytes);
    const uint64_t sequence = peer.next_sequence;
    if (!close_slot(peer, *slot)) return false;
    peer.unacknowledged.push_back({sequence, piece.payload.length, packet.operation == nic::Operation::ack});
    peer.unacknowledged_bytes += piece.payload.length;
    one.done += piece.payload.length;
  } while (one.done < packet.payload.length);
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
  header.moved = peer.moved;
  std::ignore = wire::begin_envelope(header, slot->bytes);
  return slot;
}

// Seals and sends the message. False: it cannot go now, and has not gone.
bool FabricTransport::close_slot(Peer& peer, FabricPort::Slot& slot) {
  wire::seal_envelope(secret_, 0, slot.bytes);
  if (!port_->send(slot)) {
    port_->give_back(slot);
    return false;
  }
  ++counts_.messages;
  ++peer.next_sequence;
  peer.told = peer.expected;
  peer.note_at = Time::never();
  begin_talk(peer);
  return true;
}

// Starts the time within which the peer owes us signs of life.
void FabricTransport::begin_talk(Peer& peer) {
  if (std::exchange(peer.talked, true)) return;
  peer.heard = monotonic_now();
  look_at_ = std::min(look_at_, peer.heard + patience_.keepalive);
}

// Sends the peer an acknowledgement, and whether it must stop. False: it could not go now; look_at_clock() tries again.
bool FabricTransport::note(Peer& peer, uint16_t flags) {
  FabricPort::Slot* const slot = open_slot(peer, wire::EnvelopeKind::note, flags);
  if (slot == nullptr || !close_slot(peer, *slot)) {
    peer.note_at = std::min(peer.note_at, now_ + look_again);
    look_at_ = std::min(look_at_, peer.note_at);
    return false;
  }
  ++counts_.notes;
  return true;
}

// Sends the peer the names of its loans that this process does not need any more.
void FabricTransport::say_taken(Peer& peer) {
  while (!peer.returns.empty()) {
    FabricPort::Slot* const slot = open_slot(peer, wire::EnvelopeKind::taken, 0);
    if (slot == nullptr) return;
    wire::append(peer.returns.front(), slot->bytes);
    if (!close_slot(peer, *slot)) return;
    peer.returns.pop_front();
  }
}

void FabricTransport::flush(Peer& peer) {
  if (peer.lost || !peer.waits()) return;
  say_taken(peer);
  for (auto* const queue : {&peer.answers, &peer.waiting}) {
    while (!queue->empty() && (queue == &peer.answers || !peer.told_to_stop) && transmit(peer, queue->front())) {
      const Waiting gone = std::move(queue->front());
      queue->pop_front();
      if (gone.as_pieces && !gone.copied) client_.sent(reading_of(gone.outbound));
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

void FabricTransport::look_at_clock(Time now) {
  look_at_ = Time::never();
  for (const auto& one : peers_) {
    if (!one || one->lost || !one->talked) continue;
    Peer& peer = *one;
    if (peer.note_at <= now) std::ignore = note(peer, 0);
    const bool silent = peer.asked > peer.heard && now - peer.heard >= patience_.silence;
    const bool gap = !peer.early.empty() && now - peer.gap_since >= patience_.gap;
    if (silent || gap) {
      tell_of(peer.rank, silent ? "it does not answer" : "a message is missing");
      lose(peer);
      continue;
    }
    if (now - std::max(peer.heard, peer.asked) >= patience_.keepalive) {
      peer.asked = now;  // even if it cannot be asked now: a peer that takes nothing is silent, too
      std::ignore = note(peer, wire::EnvelopeHeader::ask);
    }
    look_at_ = std::min({look_at_, peer.note_at, std::max(peer.heard, peer.asked) + patience_.keepalive});
    if (!peer.early.empty()) look_at_ = std::min(look_at_, peer.gap_since + patience_.gap);
  }
}

// Prints why a peer is given up. Nothing is printed if nothing was on its way to the peer: it may have ended as
// planned.
void FabricTransport::tell_of(nic::Rank rank, const std::string& why) const {
  const Peer* const peer = find(rank);
  if (peer == nullptr || peer->lost || untaken(rank).packets == 0) return;
  log::emit(log::Level::warning, "live",
            text("rank ", rank, " is given up: ", why, " (", port_->describe(), ", ", port_->describe(rank), ")"));
}

void FabricTransport::stop(nic::Rank rank, bool stopped) {
  Peer* const peer = find(rank);
  if (peer == nullptr || peer->lost || peer->stopped == stopped) return;
  peer->stopped = stopped;
  begin_talk(*peer);
  std::ignore = note(*peer, 0);
}

void FabricTransport::moved(nic::Rank rank) {
  if (Peer* const peer = find(rank)) ++peer->moved;
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

Untaken FabricTransport::untaken(nic::Rank rank) const {
  const Peer* const peer = find(rank);
  if (peer == nullptr) return {};
  if (peer->lost) return peer->left;
  Untaken left;
  left.moved = peer->moved_there;
  for (const auto& sent : peer->unacknowledged) {
    ++left.packets;
    left.notes += sent.note ? 1 : 0;
    left.bytes += sent.note ? 0 : sent.bytes;
  }
  for (const auto* const queue : {&peer->answers, &peer->waiting}) {
    for (const Waiting& one : *queue) one.count(left);
  }
  for (const auto& [name, lent] : peer->lent) {
    ++left.packets;
    left.bytes += lent.bytes;
  }
  left.packets += peer->returns.size();
  left.notes += peer->returns.size();
  for (const auto& [address, borrowed] : peer->borrowed) left.writes = left.writes || borrowed.reads > 0;
  return left;
}

void FabricTransport::lose(Peer& peer) {
  peer.left = untaken(peer.rank);
  peer.left.gone = true;
  if (peer.waits()) --waiting_;
  peer.lost = true;
  client_.lost(peer.rank);
  for (const FabricRead& read : reads_.abandon(peer.rank)) end_read(read, false);
  for (auto* const queue : {&peer.answers, &peer.waiting}) {
    for (const Waiting& one : std::exchange(*queue, {})) {
      if (one.place) port_->take_back(*one.place);
      if (!one.copied) client_.sent(reading_of(one.outbound));
    }
  }
  for (const auto& [name, lent] : std::exchange(peer.lent, {})) {
    port_->take_back(lent.place);
    client_.sent(lent.reading);
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
  if (!looks) return look_at_;
  const bool soon = port_->descriptor() < 0 && now_ - active_ < lively;
  return std::min(look_at_, now_ + (soon ? look_soon : look_again));
}

void FabricTransport::arm() {
  news_ = !port_->arm();
  if (!news_ && port_->descriptor() >= 0 && !armed_.exchange(true)) arm_(port_->descriptor());
}

// Waits, not longer than `goodbye_max`, until the last messages have left and every peer has been told. Then ends all
// loans.
void FabricTransport::say_goodbye() {
  std::vector<Peer*> untold;
  for (const auto& peer : peers_) {
    if (peer && peer->talked && !peer->lost) untold.push_back(peer.get());
  }
  for (const Time until = monotonic_now() + goodbye_max; monotonic_now() < until; std::this_thread::yield()) {
    std::erase_if(untold, [&](Peer* peer) {
      say_taken(*peer);
      return peer->returns.empty() && note(*peer, wire::EnvelopeHeader::bye);
    });
    if (untold.empty() && port_->idle()) break;
    std::ignore = collect(true);
    inbox_.clear();
  }
  for (const auto& peer : peers_) {
    if (!peer) continue;
    for (const auto& [name, lent] : peer->lent) port_->take_back(lent.place);
  }
}

}  // namespace spinloom::live
