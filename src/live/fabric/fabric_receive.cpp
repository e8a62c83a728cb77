// The receiving side: messages, acknowledgements, loans, and the bytes that are read from peers.
#include <algorithm>
#include <utility>

#include "live/fabric/fabric_peer.hpp"
#include "live/fabric/fabric_transport.hpp"
#include "live/node/futex.hpp"
#include "nic/wire/packet_format.hpp"

namespace spinloom::live {
namespace {

constexpr int messages_per_poll = 64;
constexpr uint64_t note_after_messages = 64;   // the acknowledgement of this many messages leaves at once
constexpr Time note_after{1'000'000'000};      // 1 ms: after that, fewer are acknowledged
constexpr size_t early_max = 512;              // messages of a peer that wait for one that is missing
constexpr Time slept_after{1'000'000'000'000};  // 1 s beyond a keepalive without a poll(): this process has slept
constexpr uint64_t loan_bytes_max = uint64_t{1} << 40;
constexpr uint64_t first_address = 1 << 20;
constexpr uint64_t between_loans = 1 << 16;

}  // namespace

bool FabricTransport::poll() {
  const Time before = std::exchange(now_, monotonic_now());
  if (before > Time{} && now_ - before > patience_.keepalive + slept_after) discount_sleep(now_ - before);
  // Progress of the port alone counts, too: otherwise our driver would sleep without arming the port again.
  bool happened = std::exchange(port_has_events_, false) || !failed_.empty();
  happened = collect(false) || happened;
  for (int taken = 0; taken < messages_per_poll && !inbox_.empty(); ++taken) {
    const Message one = std::move(inbox_.front());
    inbox_.pop_front();
    receive(one.copy.empty() ? one.bytes : one.copy);
    if (one.copy.empty()) port_->release_message(one.bytes);
    happened = true;
  }
  if (inbox_.empty()) {  // a peer's loss comes behind its messages
    for (const nic::Rank rank : std::exchange(failed_, {})) {
      Peer* const peer = find(rank);
      if (peer != nullptr && !peer->lost) lose(*peer);
    }
  }
  flush_all();
  if (now_ >= next_deadline_) check_deadlines(now_);
  if (happened) last_event_at_ = now_;
  return happened;
}

// Takes from the port what has happened. Messages wait in the inbox, because this may be called while one is being
// taken; reads that have ended are reported at once.
bool FabricTransport::collect(bool copying) {
  bool read = false;
  events_.clear();
  port_->poll(events_);
  for (const FabricEvent& one : events_) {  // nothing in this loop collects again
    switch (one.kind) {
      case FabricEvent::Kind::received:
        inbox_.push_back({one.bytes, {}});
        if (!copying) break;
        inbox_.back().copy.assign(one.bytes.begin(), one.bytes.end());
        port_->release_message(one.bytes);
        if (inbox_.back().copy.empty()) inbox_.pop_back();
        break;
      case FabricEvent::Kind::failed:
        if (!has_failed(one.peer)) warn_lost(one.peer, "a message is not delivered: " + one.why);
        failed_.push_back(one.peer);
        break;
      case FabricEvent::Kind::read:
        read = true;
        if (const auto ended = reads_.end_piece(one.token, one.succeeded)) end_read(ended->read, ended->succeeded);
        break;
    }
  }
  reads_.advance();
  for (const FabricRead& one : reads_.take_refused()) end_read(one, false);
  return read;
}

// While this process slept it could hear no peer. That time does not count as silence of its peers.
void FabricTransport::discount_sleep(Time slept) {
  for (const auto& peer : peers_) {
    if (!peer || !peer->in_contact) continue;
    peer->heard_at += slept;
    peer->probed_at += slept;
    peer->gap_since += slept;
  }
}

bool FabricTransport::has_failed(nic::Rank peer) const {
  return std::find(failed_.begin(), failed_.end(), peer) != failed_.end();
}

void FabricTransport::receive(std::span<const uint8_t> bytes) {
  const auto opened = wire::open_envelope(secret_, bytes);
  Peer* const peer = opened && opened->header.target == rank_ ? find(opened->header.source) : nullptr;
  if (peer == nullptr) {
    ++counts_.foreign;
    return;
  }
  if (peer->lost) return;
  const uint64_t sequence = opened->header.sequence;
  if (sequence < peer->expected || peer->early.contains(sequence)) {
    ++counts_.repeated;
    return;
  }
  if (!std::exchange(peer->in_contact, true)) next_deadline_ = now_;
  peer->heard_at = now_;
  if (sequence > peer->expected) {
    if (peer->early.size() == early_max) return lose(*peer);
    if (peer->early.empty()) peer->gap_since = now_;
    peer->early[sequence].assign(bytes.begin(), bytes.end());
    next_deadline_ = std::min(next_deadline_, peer->gap_since + patience_.gap);
    return;
  }
  ++peer->expected;
  take(*peer, *opened);
  if (!peer->early.empty()) take_early(*peer);
}

// Takes messages that came before one that was sent earlier: some fabrics complete messages in another order than sent.
void FabricTransport::take_early(Peer& peer) {
  while (!peer.lost && !peer.early.empty() && peer.early.begin()->first == peer.expected) {
    const std::vector<uint8_t> bytes = std::move(peer.early.begin()->second);
    peer.early.erase(peer.early.begin());
    peer.gap_since = now_;
    const auto opened = wire::open_envelope(secret_, bytes);
    SPL_ASSERT(opened.ok(), "an early envelope was one when it came");
    ++peer.expected;
    take(peer, *opened);
  }
}

void FabricTransport::take(Peer& peer, const wire::Envelope& envelope) {
  const wire::EnvelopeHeader& header = envelope.header;
  const bool stop = (header.flags & wire::EnvelopeHeader::stop) != 0;
  const bool goes_on = std::exchange(peer.told_to_stop, stop) && !stop;
  take_received(peer, header);
  switch (header.kind) {
    case wire::EnvelopeKind::packet: take_packet(peer, envelope.body); break;
    case wire::EnvelopeKind::loan: take_loan(peer, envelope.body); break;
    case wire::EnvelopeKind::loan_returned: take_return(peer, envelope.body); break;
    case wire::EnvelopeKind::note: break;
  }
  if (peer.lost) return;
  if ((header.flags & wire::EnvelopeHeader::bye) != 0) return lose(peer);
  if (goes_on) flush(peer);
  const bool asked = (header.flags & wire::EnvelopeHeader::ask) != 0;
  if (asked || peer.expected - peer.acknowledged >= note_after_messages) {
    std::ignore = send_note(peer, 0);
  } else if (header.kind != wire::EnvelopeKind::note && peer.acknowledged < peer.expected &&
             peer.acknowledge_at == Time::never()) {
    peer.acknowledge_at = now_ + note_after;
    next_deadline_ = std::min(next_deadline_, peer.acknowledge_at);
  }
}

void FabricTransport::take_received(Peer& peer, const wire::EnvelopeHeader& header) {
  if (header.received > peer.next_sequence) return;  // messages that were never sent
  peer.peer_resume_count = header.resume_count;
  bool room = false;
  while (!peer.unacknowledged.empty() && peer.unacknowledged.front().sequence < header.received) {
    peer.unacknowledged_bytes -= peer.unacknowledged.front().bytes;
    peer.unacknowledged.pop_front();
    room = true;
  }
  if (room) flush(peer);
}

void FabricTransport::take_packet(Peer& peer, std::span<const uint8_t> body) {
  const auto packet = wire::decode(body);
  if (!packet || packet->source != peer.rank || packet->target != rank_) {
    ++counts_.malformed;
    return;
  }
  std::ignore = client_.arrived(*this, *packet, 0);
}

void FabricTransport::take_loan(Peer& peer, std::span<const uint8_t> body) {
  const auto loan = wire::take_loan(body);
  auto packet = wire::decode(body);
  if (loan && packet) {
    const uint64_t address = std::max(next_fake_address_, first_address);
    packet->payload = {nic::PayloadRef::Space::peer, reinterpret_cast<const uint8_t*>(address), loan->length};
    next_fake_address_ = address + std::min(loan->length, loan_bytes_max) + between_loans;
  }
  if (!loan || !packet || packet->source != peer.rank || packet->target != rank_ || loan->length == 0 ||
      loan->length > loan_bytes_max || !wire::check(*packet)) {
    ++counts_.malformed;
    return;
  }
  const auto name = reinterpret_cast<uint64_t>(packet->payload.bytes);
  peer.borrowed[name].loan = *loan;
  if (client_.arrived(*this, *packet, name)) return_loan(peer.rank, name);
}

// The peer has read a loan, or does not want it: our memory is free again.
void FabricTransport::take_return(Peer& peer, std::span<const uint8_t> body) {
  const auto name = wire::take_loan_id(body);
  const auto found = name ? peer.lent.find(*name) : peer.lent.end();
  if (found == peer.lent.end()) {
    ++counts_.malformed;
    return;
  }
  const Peer::Lent lent = found->second;
  peer.lent.erase(found);
  port_->end_loan(lent.region);
  client_.sent(lent.completion);
}

void FabricTransport::return_loan(nic::Rank rank, uint64_t name) {
  Peer* const peer = find(rank);
  if (peer == nullptr || peer->lost) return;
  const auto found = peer->borrowed.find(name);
  if (found == peer->borrowed.end()) return;
  found->second.returned = true;
  if (found->second.reads > 0) return;
  if (!peer->waits()) ++waiting_;
  peer->returns.push_back(found->second.loan.id);
  peer->borrowed.erase(found);
  flush(*peer);
}

bool FabricTransport::begin_read(nic::Rank rank, uint64_t address, uint8_t* to, uint64_t length, uint64_t token,
                                 bool is_blocking) {
  Peer* const peer = find(rank);
  if (peer == nullptr || peer->lost || has_failed(rank)) return false;
  auto found = peer->borrowed.upper_bound(address);
  if (found == peer->borrowed.begin()) return false;
  --found;
  auto& [base, borrowed] = *found;
  const uint64_t offset = address - base;
  if (offset > borrowed.loan.length || length > borrowed.loan.length - offset) return false;
  ++borrowed.reads;
  FabricRead read{rank, base, {borrowed.loan.key, borrowed.loan.address + offset}, to, length, token, is_blocking};
  reads_.begin(read);
  return true;
}

void FabricTransport::end_read(const FabricRead& read, bool succeeded) {
  if (read.is_blocking) {
    blocking_result_ = succeeded;
  } else {
    client_.fetched(read.token, succeeded);
  }
  Peer* const peer = find(read.peer);
  const auto found = peer->borrowed.find(read.loan);
  if (found == peer->borrowed.end()) return;
  --found->second.reads;
  if (found->second.returned) return_loan(read.peer, read.loan);
}

bool FabricTransport::fetch_with_help(nic::Rank peer, uint64_t address, uint8_t* to, uint64_t length, uint64_t token) {
  return length > 0 && begin_read(peer, address, to, length, token, false);
}

Status FabricTransport::fetch(nic::Rank peer, uint64_t address, uint8_t* to, uint64_t length) {
  blocking_result_.reset();
  if (length == 0) return {};
  if (!begin_read(peer, address, to, length, 0, true)) {
    return fail(Code::invalid, "rank ", peer, " does not lend this memory");
  }
  for (const Time give_up = monotonic_now() + patience_.fetch; !blocking_result_; relax()) {
    std::ignore = collect(true);  // a message must not hold a buffer that the read needs
    if (blocking_result_ || (!has_failed(peer) && monotonic_now() < give_up)) continue;
    for (const FabricRead& read : reads_.abandon(peer)) end_read(read, false);
    if (!has_failed(peer)) failed_.push_back(peer);
  }
  if (*blocking_result_) return {};
  return fail(Code::environment, "the memory of rank ", peer, " could not be read");
}

}  // namespace spinloom::live
