// The sending side of a bridge: packets in pieces, credit, farewells, and the loss of far ranks.
#include "live/bridge/bridge_transport.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "live/bridge/bridge_peer.hpp"
#include "live/node/backlog.hpp"
#include "live/node/futex.hpp"
#include "nic/wire/packet_format.hpp"

namespace spinloom::live {
namespace {

constexpr size_t waiting_packets_max = 64;  // more waiting packets than this count as congestion

// Holds back what a link sends during the life of this object, so that it leaves together.
class Corked {
 public:
  explicit Corked(Transport* link) : link_(link) {
    if (link_ != nullptr) link_->cork();
  }
  ~Corked() {
    if (link_ != nullptr) link_->uncork();
  }
  Corked(const Corked&) = delete;
  Corked& operator=(const Corked&) = delete;

 private:
  Transport* link_;
};

wire::BridgeClass class_of(const nic::Packet& packet) {
  return packet.is_answer() ? wire::BridgeClass::answers : wire::BridgeClass::requests;
}

}  // namespace

BridgeTransport::BridgeTransport(TransportClient& client, uint32_t rank, uint32_t program_count, BridgeRoutes routes,
                                 const BridgeOptions& options)
    : client_(client),
      rank_{rank},
      program_count_(program_count),
      routes_(std::move(routes)),
      options_(options),
      links_(rank, routes_.ranks()),
      peers_(routes_.ranks()) {
  SPL_ASSERT(options_.window_frames <= Backlog::stop_at.packets && options_.window_bytes <= Backlog::stop_at.bytes,
             "what comes after a stop would be refused");
  if (routes_.is_gateway(rank)) {
    forwarder_ = std::make_unique<BridgeForwarder>(rank, program_count, routes_, options_, links_);
  }
  for (uint32_t peer = 0; peer < peers_.size(); ++peer) {
    if (peer == rank || routes_.direct(rank, peer) || routes_.path(rank, peer).empty()) continue;
    peers_[peer] = std::make_unique<Peer>();
    peers_[peer]->rank = nic::Rank{peer};
  }
}

BridgeTransport::~BridgeTransport() = default;

BridgeTransport::Peer* BridgeTransport::find(nic::Rank rank) const {
  return rank.value < peers_.size() ? peers_[rank.value].get() : nullptr;
}

void BridgeTransport::greet() {
  for (uint32_t peer = 0; peer < peers_.size(); ++peer) {
    const bool watched = routes_.direct(rank_.value, peer) && (forwarder_ || routes_.is_gateway(peer));
    if (watched) send_unnumbered(wire::BridgeKind::hello, rank_, nic::Rank{peer});
  }
}

bool BridgeTransport::has_window(const Flow& flow) const {
  return flow.in_flight.size() < options_.window_frames && flow.in_flight_bytes < options_.window_bytes;
}

bool BridgeTransport::send(nic::Send& outbound) {
  Peer* const peer = find(outbound.packet.target);
  if (peer == nullptr) client_.lost(outbound.packet.target);
  if (peer == nullptr || peer->lost) return true;
  WaitingSend waiting(std::move(outbound));
  std::deque<WaitingSend>& queue = peer->flow(class_of(waiting.outbound.packet)).waiting;
  if (queue.empty() && transmit(*peer, waiting)) return true;
  if (waiting.must_copy()) waiting.keep();
  if (!peer->waits()) ++waiting_;
  const bool copied = waiting.copied;
  queue.push_back(std::move(waiting));
  return copied;
}

// Sends as many pieces of the packet as there is credit for. Returns true if all of them have been sent.
bool BridgeTransport::transmit(Peer& peer, WaitingSend& waiting) {
  const nic::Packet& packet = waiting.outbound.packet;
  Flow& flow = peer.flow(class_of(packet));
  const bool atomic = packet.operation == nic::Operation::atomic || packet.operation == nic::Operation::fetch_atomic;
  const uint64_t most = atomic ? packet.payload.length : options_.piece_bytes;  // an atomic is not cut
  if (!has_window(flow)) return false;
  const Corked together(links_.to(first_of(peer)));
  do {
    if (!has_window(flow)) return false;
    nic::Packet piece = packet;
    piece.offset += waiting.done;
    piece.payload.bytes += waiting.done;
    piece.payload.length = std::min(most, packet.payload.length - waiting.done);
    waiting.done += piece.payload.length;
    wire::BridgeHeader header = header_to(peer, wire::BridgeKind::packet);
    header.traffic_class = class_of(packet);
    header.is_last_packet = piece.is_last() || (piece.missing > 0 && waiting.done == packet.payload.length);
    header.sequence = flow.next++;
    flow.in_flight.push_back({header.sequence, piece.payload.length, packet.operation == nic::Operation::ack});
    flow.in_flight_bytes += piece.payload.length;
    frame_.clear();
    wire::append_frame(header, frame_);
    wire::encode(piece, frame_);
    pass(peer);
  } while (waiting.done < packet.payload.length);
  return true;
}

wire::BridgeHeader BridgeTransport::header_to(Peer& peer, wire::BridgeKind kind) {
  wire::BridgeHeader header;
  header.kind = kind;
  header.source = rank_;
  header.target = peer.rank;
  header.resume_count = peer.resume_count;
  for (size_t of = 0; of < peer.flows.size(); ++of) {
    Flow& flow = peer.flows[of];
    header.received[of] = flow.announced = flow.granted;
    flow.unannounced_bytes = 0;
  }
  peer.credit_at = Time::never();
  return header;
}

// Returns the first rank on the path to the peer.
nic::Rank BridgeTransport::first_of(const Peer& peer) const {
  return nic::Rank{routes_.path(rank_.value, peer.rank.value)[1]};
}

// Hands the frame in frame_ to the first link of the path to the peer.
void BridgeTransport::pass(const Peer& peer) {
  ++counts_.frames;
  std::ignore = links_.pass(first_of(peer), frame_);
}

void BridgeTransport::give_credit(Peer& peer) {
  ++counts_.credits;
  frame_.clear();
  wire::append_frame(header_to(peer, wire::BridgeKind::credit), frame_);
  pass(peer);
}

// Sends a note without a number or credit, in the name of `source`.
void BridgeTransport::send_unnumbered(wire::BridgeKind kind, nic::Rank source, nic::Rank target,
                                      const std::array<uint64_t, 2>& numbers) {
  const auto next = routes_.next_hop(rank_.value, source.value, target.value);
  if (!next) return;
  wire::BridgeHeader header;
  header.kind = kind;
  header.source = source;
  header.target = target;
  header.received = numbers;
  frame_.clear();
  wire::append_frame(header, frame_);
  ++counts_.frames;
  std::ignore = links_.pass(nic::Rank{*next}, frame_);
}

void BridgeTransport::flush(Peer& peer) {
  if (peer.lost || !peer.waits()) return;
  for (const auto of : {wire::BridgeClass::answers, wire::BridgeClass::requests}) {
    std::deque<WaitingSend>& queue = peer.flow(of).waiting;
    while (!queue.empty() && transmit(peer, queue.front())) {
      const WaitingSend gone = std::move(queue.front());
      queue.pop_front();
      if (!gone.copied) client_.sent(completion_of(gone.outbound));
    }
  }
  if (!peer.waits()) --waiting_;
}

bool BridgeTransport::poll() {
  const bool happened = has_news();
  for (const nic::Rank hop : std::exchange(lost_links_, {})) lose_ranks_behind(hop);
  if (can_notify_next()) notify_next();
  if (timer() == Time::never()) return happened;
  const Time now = monotonic_now();
  const bool released = forwarder_ && forwarder_->on_timer(now);
  if (now < next_credit_at_) return happened || released;
  next_credit_at_ = Time::never();
  for (const auto& peer : peers_) {
    if (!peer || peer->lost) continue;
    if (peer->credit_at <= now) give_credit(*peer);
    next_credit_at_ = std::min(next_credit_at_, peer->credit_at);
  }
  return happened || released;
}

Time BridgeTransport::timer() const {
  if (has_news()) return Time{};
  return forwarder_ ? std::min(next_credit_at_, forwarder_->timer()) : next_credit_at_;
}

// Removes the link; poll() does the rest, because this may be called while a link sends or delivers.
void BridgeTransport::lose_link(nic::Rank peer) {
  if (links_.to(peer) == nullptr) return;
  links_.unlink(peer);
  lost_links_.push_back(peer);
}

// Loses the far ranks behind this link. A gateway also tells each rank whose path to one of them led over the link.
void BridgeTransport::lose_ranks_behind(nic::Rank hop) {
  const uint32_t here = rank_.value;
  forget(hop);
  for (const auto& peer : peers_) {
    if (!peer || first_of(*peer) != hop) continue;
    forget(peer->rank);
    if (!peer->lost) lose(*peer);
  }
  if (!forwarder_) return;
  for (uint32_t target = 0; target < peers_.size(); ++target) {
    if (target != hop.value && !routes_.is_gateway(hop.value)) continue;  // no rank is reached through it
    for (uint32_t told = 0; told < peers_.size(); ++told) {
      if (told == here || told == target || routes_.direct(told, target)) continue;
      if (forwarder_->has_left(nic::Rank{told})) continue;  // this rank may have ended
      if (routes_.next_hop(here, told, target) != hop.value) continue;
      send_unnumbered(wire::BridgeKind::source_unreachable, nic::Rank{target}, nic::Rank{told},
                      {forwarder_->whole_until(target, told, 0), forwarder_->whole_until(target, told, 1)});
    }
  }
}

// Stops waiting for a rank that is gone: it confirms nothing more, and needs no gateway any more.
void BridgeTransport::forget(nic::Rank gone) {
  std::erase(unnotified_gateways_, gone);
  std::erase(unconfirmed_gateways_, gone);
  if (Peer* const peer = find(gone)) peer->still_forwards = false;
  if (forwarder_) forwarder_->note_left(gone);
}

// `still_forwards`: the peer has said goodbye. It sends gateways the note `leave` when it takes nothing more.
void BridgeTransport::lose(Peer& peer, bool still_forwards) {
  peer.outstanding_at_loss = outstanding(peer.rank);
  peer.outstanding_at_loss.is_lost = true;
  if (peer.waits()) --waiting_;
  peer.lost = true;
  peer.credit_at = Time::never();
  peer.still_forwards = still_forwards && routes_.is_gateway(peer.rank.value);
  if (!still_forwards) forget(peer.rank);
  client_.lost(peer.rank);
  for (Flow& flow : peer.flows) {
    for (const WaitingSend& one : std::exchange(flow.waiting, {})) {
      if (!one.copied) client_.sent(completion_of(one.outbound));
    }
    flow.in_flight.clear();
    flow.in_flight_bytes = 0;
    flow.early.clear();
  }
}

void BridgeTransport::set_stopped(nic::Rank rank, bool stopped) {
  Peer* const peer = find(rank);
  if (peer == nullptr || peer->lost || peer->stopped == stopped) return;
  peer->stopped = stopped;
  Flow& requests = peer->flow(wire::BridgeClass::requests);
  if (stopped || requests.granted == requests.expected) return;
  requests.granted = requests.expected;
  give_credit(*peer);
}

// Counts that a packet of the peer has gone on. A peer that was told to stop gets the count after `credit_after`.
void BridgeTransport::note_resumed(nic::Rank rank) {
  Peer* const peer = find(rank);
  if (peer == nullptr || peer->lost) return;
  ++peer->resume_count;
  if (!peer->stopped || peer->credit_at != Time::never()) return;
  peer->credit_at = monotonic_now() + options_.credit_after;
  next_credit_at_ = std::min(next_credit_at_, peer->credit_at);
}

Status BridgeTransport::fetch(nic::Rank peer, uint64_t, uint8_t*, uint64_t) {
  return fail(Code::unsupported, "rank ", peer, "'s memory is behind a gateway");
}

bool BridgeTransport::congested(nic::Rank rank) const {
  const Peer* const peer = find(rank);
  return peer != nullptr && !peer->lost && peer->flows[0].waiting.size() > waiting_packets_max;
}

bool BridgeTransport::drained() const {
  if (waiting_ > 0 || !lost_links_.empty() || (forwarder_ && forwarder_->holds())) return false;
  return std::all_of(peers_.begin(), peers_.end(), [](const auto& peer) {
    return !peer || peer->lost || (peer->flows[0].in_flight.empty() && peer->flows[1].in_flight.empty());
  });
}

Outstanding BridgeTransport::outstanding(nic::Rank rank) const {
  const Peer* const peer = find(rank);
  if (peer == nullptr) return {};
  if (peer->lost) return peer->outstanding_at_loss;
  Outstanding totals;
  totals.progress = peer->peer_resume_count;
  for (const Flow& flow : peer->flows) {
    for (const Flow::Sent& sent : flow.in_flight) {
      ++totals.packets;
      totals.control_packets += sent.is_ack ? 1 : 0;
      totals.bytes += sent.bytes;
    }
    for (const WaitingSend& one : flow.waiting) one.count(totals);
  }
  return totals;
}

std::string BridgeTransport::describe(nic::Rank rank) {
  const BridgeRoutes::Path& path = routes_.path(rank_.value, rank.value);
  std::string via;
  for (size_t i = 1; i + 1 < path.size(); ++i) {
    const bool has_program = path[i] < program_count_;
    via += text(i == 1 ? "" : ", then ", has_program ? "rank " : "gateway ",
                has_program ? path[i] : path[i] - program_count_);
  }
  const char* const kind = path.at(1) >= program_count_ ? "" : path.size() > 3 ? " (gateways)" : " (gateway)";
  Transport* const first = links_.to(nic::Rank{path.at(1)});
  const std::string link = first == nullptr ? "which is lost" : first->describe(nic::Rank{path[1]});
  return text("a bridge through ", via, kind, ", ", link);
}

void BridgeTransport::say_goodbye() {
  if (rank_.value >= program_count_) return;
  for (const auto& peer : peers_) {
    if (!peer || peer->lost) continue;
    wire::BridgeHeader header = header_to(*peer, wire::BridgeKind::bye);
    header.sequence = peer->flow(wire::BridgeClass::requests).next++;
    frame_.clear();
    wire::append_frame(header, frame_);
    pass(*peer);
  }
  for (const uint32_t gateway : routes_.gateways()) {
    const Peer* const far = peers_[gateway].get();
    const bool there = far != nullptr ? !far->lost || far->still_forwards : links_.to(nic::Rank{gateway}) != nullptr;
    if (gateway != rank_.value && there) unnotified_gateways_.emplace_back(nic::Rank{gateway});
  }
  std::sort(unnotified_gateways_.begin(), unnotified_gateways_.end(), [this](nic::Rank a, nic::Rank b) {
    return std::pair(distance_of(a), a.value) < std::pair(distance_of(b), b.value);
  });
  if (can_notify_next()) notify_next();
}

size_t BridgeTransport::distance_of(nic::Rank gateway) const {
  return peers_[gateway.value] ? routes_.path(rank_.value, gateway.value).size() : 0;
}

// Tells the farthest gateways that have not been told, all at one distance. A gateway ends when all ranks have told it,
// so a nearer one that was told at the same time might no longer forward the confirmations of farther ones.
void BridgeTransport::notify_next() {
  const size_t distance = distance_of(unnotified_gateways_.back());
  while (!unnotified_gateways_.empty() && distance_of(unnotified_gateways_.back()) == distance) {
    unconfirmed_gateways_.push_back(unnotified_gateways_.back());
    unnotified_gateways_.pop_back();
    send_unnumbered(wire::BridgeKind::leave, rank_, unconfirmed_gateways_.back());
  }
}

}  // namespace spinloom::live
