#include "live/udp/udp_transport.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <thread>
#include <tuple>
#include <utility>

#include "base/log.hpp"
#include "live/node/backlog.hpp"
#include "live/node/futex.hpp"
#include "portals/interface/data_order.hpp"

namespace spinloom::live {
namespace {

constexpr int batches_per_poll = 4;
constexpr Time turn{5'000'000'000};  // 5 ms: peers that send nothing in it do not count for the shares of the room
constexpr uint32_t room_min = 4;
constexpr Time look_at_lost_every{100'000'000'000};  // 100 ms

// Returns the most segments under way to or from a peer. They may all still arrive after a stop, and the backlog takes
// them. They are no more than a socket holds, in either direction, but at least `room_min`.
uint32_t window_of(const DatagramPort& port, size_t datagram_bytes) {
  constexpr size_t bytes = 3 << 20, segments = 512;
  static_assert(bytes <= Backlog::stop_at.bytes && segments <= Backlog::stop_at.packets);
  const size_t most = std::min(segments, bytes / datagram_bytes);
  return static_cast<uint32_t>(std::min(most, std::max<size_t>(port.receive_capacity(), room_min)));
}

}  // namespace

size_t UdpTransport::datagram_bytes(const DatagramPort& port, const std::vector<BusinessCard>& cards,
                                    const std::vector<bool>& reached) {
  size_t bytes = port.datagram_bytes();
  for (size_t peer = 0; peer < cards.size(); ++peer) {
    if (reached[peer] && cards[peer].datagram_bytes != 0) bytes = std::min<size_t>(bytes, cards[peer].datagram_bytes);
  }
  return bytes;
}

Result<std::unique_ptr<UdpTransport>> UdpTransport::create(TransportClient& client, std::unique_ptr<DatagramPort> port,
                                                           uint32_t rank, const std::vector<BusinessCard>& cards,
                                                           const std::vector<bool>& reached, Arm arm, bool returns,
                                                           const UdpPatience& patience) {
  wire::ReliableConfig config;
  config.secret = {cards[0].nonce[0], cards[0].nonce[1]};
  config.datagram_bytes = datagram_bytes(*port, cards, reached);
  config.window = window_of(*port, config.datagram_bytes);
  config.copy_bytes = 4096;  // a copy is cheaper than an acknowledgement of its own
  config.keepalive = patience.keepalive;
  config.silence = patience.silence;
  config.timeouts_max = patience.timeouts;
  config.peers_may_return = returns;
  SPL_TRY(wire::check(config));
  std::unique_ptr<UdpTransport> made(new UdpTransport(client, std::move(port), rank, cards, config, std::move(arm)));
  made->peers_may_return_ = returns;
  for (uint32_t peer = 0; peer < cards.size(); ++peer) {
    if (!reached[peer] || peer == rank) continue;
    SPL_TRY(made->reliable_.add_peer(nic::Rank{peer}, config.epoch));
    made->senders_[peer].served = true;
    made->set_stopped(nic::Rank{peer}, false);
  }
  return made;
}

UdpTransport::UdpTransport(TransportClient& client, std::unique_ptr<DatagramPort> port, uint32_t rank,
                           const std::vector<BusinessCard>& cards, const wire::ReliableConfig& config, Arm arm)
    : client_(client),
      port_(std::move(port)),
      cards_(cards),
      arm_(std::move(arm)),
      datagram_bytes_(config.datagram_bytes),
      reliable_(nic::Rank{rank}, config),
      senders_(cards.size()) {}

bool UdpTransport::send(nic::Send& outbound) {
  nic::Packet packet = outbound.packet;
  wire::SendOptions options;
  std::vector<uint8_t> gathered;
  options.copy = outbound.at_once || portals::is_short_reply(packet) ||
                 (outbound.from_device && !outbound.slot.exists());  // a handler does not wait
  if (!outbound.pieces.empty()) {
    gathered.resize(packet.payload.length);
    nic::gather(outbound.pieces, gathered.data());
    packet.payload.bytes = gathered.data();
    options.copy = true;
  }
  if (free_tickets_.empty()) {
    completions_.emplace_back();
    free_tickets_.push_back(completions_.size());
  }
  options.ticket = free_tickets_.back();
  free_tickets_.pop_back();
  completions_[options.ticket - 1] = completion_of(outbound);
  if (const Status sent = reliable_.on_send(monotonic_now(), packet, options, send_out_); !sent) {
    free_tickets_.push_back(options.ticket);
    client_.lost(packet.target);  // an unknown peer
    return true;
  }
  if (corks_ == 0) perform(send_out_);
  return false;
}

void UdpTransport::uncork() {
  if (--corks_ == 0) perform(send_out_);
}

bool UdpTransport::poll() {
  bool happened = false;
  for (int i = 0; i < batches_per_poll; ++i) {
    const auto taken = port_->receive();
    if (taken.empty()) break;
    happened = true;
    const Time now = monotonic_now();
    update_disconnected(now);
    for (const DatagramIn& one : taken) std::ignore = reliable_.on_datagram(now, one.bytes, receive_out_);
    for (const nic::Packet& packet : receive_out_.deliver) note_sender(packet.source);
    if (now >= turn_end_ || senders_in_turn_ > share_count_) share_room(now);
    if (now >= reliable_.timer()) reliable_.on_timer(now, receive_out_);
    perform(receive_out_);
    if (!port_->was_full()) break;
  }
  if (timer() != Time::never()) {
    const Time now = monotonic_now();
    if (now >= next_look_at_lost_) {
      next_look_at_lost_ = now + look_at_lost_every;
      update_disconnected(now);
    }
    if (now >= reliable_.timer()) {
      reliable_.on_timer(now, receive_out_);
      happened = happened || !receive_out_.transmit.empty();
      perform(receive_out_);
    }
  }
  return happened;
}

void UdpTransport::update_disconnected(Time now) {
  for (const nic::Rank peer : lost_peers_) reliable_.set_quiescent(now, peer, client_.is_disconnected(peer));
}

// Does the work that `out` lists. Arriving packets may make the engine send; such a send uses another Output.
void UdpTransport::perform(wire::Output& out) {
  outgoing_.clear();
  for (const auto& one : out.transmit) {
    const BusinessCard& card = cards_[one.to.value];
    outgoing_.push_back({{card.address, card.port}, out.pieces(one)});
  }
  if (!outgoing_.empty()) port_->send(outgoing_);
  for (const nic::Rank peer : out.returned) {
    std::erase(lost_peers_, peer);
    if (lost_peers_.empty()) next_look_at_lost_ = Time::never();
    client_.reconnected(peer);
    set_room(monotonic_now(), peer);
  }
  if (!out.lost.empty()) deliver(out);  // packets of a lost peer came before its loss
  for (const auto& lost : out.lost) {
    warn_lost(lost);
    client_.lost(lost.peer);
    if (peers_may_return_) {
      lost_peers_.push_back(lost.peer);
      next_look_at_lost_ = Time{};
    }
    std::erase_if(incoming_, [&](const auto& one) { return one.first.first == lost.peer.value; });
  }
  for (const uint64_t ticket : out.released) {
    free_tickets_.push_back(ticket);
    client_.sent(completions_[ticket - 1]);
  }
  deliver(out);
  out.clear();
}

// While packets are delivered no datagram is taken, so what waits in `send_out_` stays as it is.
void UdpTransport::deliver(wire::Output& out) {
  if (out.deliver.empty()) return;
  if (corks_deliveries_) cork();
  for (const nic::Packet& packet : out.deliver) deliver(packet);
  out.deliver.clear();
  if (corks_deliveries_) uncork();
}

// Prints that a peer is given up because it is silent, unless nothing was on its way to the peer: it may have ended as
// planned.
void UdpTransport::warn_lost(const wire::Output::Lost& lost) const {
  if (lost.reason != wire::LostReason::silent || reliable_.unacknowledged(lost.peer).segments == 0) return;
  const BusinessCard& card = cards_[lost.peer.value];
  const char* const advice =
      lost.ever_heard ? ""
                      : "; nothing has ever come from there: SPINLOOM_UDP_ADDRESS may name the network that joins us";
  log::emit(log::Level::warning, "live",
            text("rank ", lost.peer, " is given up: it does not answer at UDP ",
                 print(UdpAddress{card.address, card.port}), advice));
}

// Called before the owner sleeps: acknowledgements that wait for a packet to travel with leave now.
void UdpTransport::arm() {
  reliable_.acknowledge(monotonic_now(), acknowledge_out_);
  perform(acknowledge_out_);
  if (!armed_.exchange(true)) arm_(port_->descriptor());
}

// Its datagrams have an Output of their own, because this may be called while packets are delivered or sent.
void UdpTransport::set_stopped(nic::Rank peer, bool stopped) {
  senders_[peer.value].stopped = stopped;
  set_room(monotonic_now(), peer);
}

void UdpTransport::set_room(Time now, nic::Rank peer) {
  const auto share = static_cast<uint32_t>(port_->receive_capacity() / share_count_);
  const uint32_t most = window_of(*port_, datagram_bytes_);
  const bool stopped = senders_[peer.value].stopped;
  reliable_.set_receive_window(now, peer, stopped ? 0 : std::clamp(share, room_min, most), window_out_);
  perform(window_out_);
}

void UdpTransport::note_sender(nic::Rank peer) {
  if (std::exchange(senders_[peer.value].last_turn, turn_number_) != turn_number_) ++senders_in_turn_;
}

// Shares the room anew if `share_count_` changes: it grows as soon as more peers send, and shrinks only at the end of a
// turn.
void UdpTransport::share_room(Time now) {
  const uint32_t share_count = std::bit_ceil(std::max(senders_in_turn_, 1u));
  if (now >= turn_end_) {
    turn_end_ = now + turn;
    ++turn_number_;
    senders_in_turn_ = 0;
  } else if (share_count <= share_count_) {
    return;
  }
  if (std::exchange(share_count_, share_count) == share_count) return;
  for (uint32_t peer = 0; peer < senders_.size(); ++peer) {
    if (senders_[peer].served) set_room(now, nic::Rank{peer});
  }
}

// Stays for a while, if anything has come, to acknowledge datagrams that peers repeat because our acknowledgement was
// lost.
void UdpTransport::say_goodbye() {
  constexpr Time linger{20'000'000'000};  // 20 ms
  if (reliable_.counts().delivered == 0) return;
  for (const Time until = monotonic_now() + linger; monotonic_now() < until;) {
    if (!poll()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void UdpTransport::deliver(const nic::Packet& packet) {
  const uint64_t bytes = packet.payload.length + packet.missing;
  if (packet.is_answer() || (packet.is_header() && bytes == packet.message_length)) {
    std::ignore = client_.arrived(*this, packet, 0);
    return;
  }
  const std::pair<uint32_t, uint64_t> key{packet.source.value, packet.message};
  Incoming& message = incoming_[key];
  if (!message.begun && !packet.is_header()) {
    message.early.emplace_back(
        packet, std::vector<uint8_t>(packet.payload.bytes, packet.payload.bytes + packet.payload.length));
    return;
  }
  message.begun = true;
  message.bytes += bytes;
  std::ignore = client_.arrived(*this, packet, 0);
  for (auto& [early, held] : std::exchange(message.early, {})) {
    early.payload.bytes = held.data();
    message.bytes += early.payload.length + early.missing;
    std::ignore = client_.arrived(*this, early, 0);
  }
  if (message.bytes >= packet.message_length) incoming_.erase(key);
}

Status UdpTransport::fetch(nic::Rank peer, uint64_t, uint8_t*, uint64_t) {
  return fail(Code::unsupported, "rank ", peer, "'s memory is on another machine");
}

Outstanding UdpTransport::outstanding(nic::Rank peer) const {
  const wire::Unacknowledged left = reliable_.unacknowledged(peer);
  Outstanding totals;
  totals.packets = left.segments;
  totals.control_packets = left.acks;
  totals.bytes = left.bytes;
  totals.progress = left.resume_count;
  totals.is_lost = left.lost;
  return totals;
}

std::string UdpTransport::describe(nic::Rank peer) {
  const BusinessCard& card = cards_[peer.value];
  return text("UDP ", print(UdpAddress{card.address, card.port}), ", datagrams of up to ", datagram_bytes_, " B");
}

}  // namespace spinloom::live
