#include "nic/wire/reliable.hpp"

#include <algorithm>

#include "base/limits.hpp"
#include "nic/wire/reliable_impl.hpp"

namespace spinloom::wire {

Status check(const ReliableConfig& config) {
  const size_t least = datagram_header_bytes + datagram_tag_bytes + packet_header_bytes_max() + 1;
  if (config.datagram_bytes < least || config.datagram_bytes > limits::datagram_bytes_max) {
    return fail(Code::invalid, "reliable link: datagram_bytes is ", config.datagram_bytes, ", it must be ", least,
                " to ", limits::datagram_bytes_max);
  }
  if (config.window == 0 || config.window > ReliableConfig::window_max) {
    return fail(Code::invalid, "reliable link: window is ", config.window, " segments, it must be 1 to ",
                ReliableConfig::window_max);
  }
  if (config.window_first == 0 || config.acks_after == 0 || config.ack_delay < Time{0} ||
      config.ack_delay >= config.timeout_min) {
    return fail(Code::invalid, "reliable link: window_first is ", config.window_first, ", acks_after ",
                config.acks_after, ", ack_delay ", config.ack_delay,
                "; the first two must be above 0, the last less than timeout_min");
  }
  if (config.timeout_min <= Time{0} || config.timeout_first < config.timeout_min ||
      config.timeout_max < config.timeout_first || config.timeouts_max == 0 || config.keepalive <= Time{0} ||
      config.knock_every <= Time{0}) {
    return fail(Code::invalid, "reliable link: time-outs of ", config.timeout_min, " at least, ", config.timeout_first,
                " at first, ", config.timeout_max, " at most, ", config.timeouts_max, " of them, keepalive ",
                config.keepalive, ", knock_every ", config.knock_every,
                "; they must grow in this order and be above 0");
  }
  return {};
}

void Out::clear() {
  bytes.clear();
  transmit.clear();
  deliver.clear();
  message_sent.clear();
  released.clear();
  lost.clear();
  back.clear();
  kept.clear();
}

Out::Pieces Out::pieces(const Transmit& one) const {
  const std::span<const uint8_t> head(bytes.data() + one.at, one.head_bytes + datagram_tag_bytes);
  if (one.payload.empty()) return {head, {}, {}};
  return {head.first(one.head_bytes), one.payload, head.subspan(one.head_bytes)};
}

std::vector<uint8_t> Out::datagram(const Transmit& one) const {
  std::vector<uint8_t> whole;
  for (const auto& piece : pieces(one)) whole.insert(whole.end(), piece.begin(), piece.end());
  return whole;
}

namespace {

// A packet to a lost peer goes nowhere; its payload is reported free at once.
void report_free(const nic::Packet& packet, const SendOptions& options, Out& out) {
  const bool last = packet.is_last() || packet.missing > 0;
  if (options.ticket != 0) {
    out.released.push_back(options.ticket);
  } else if (last && packet.operation != nic::Operation::ack) {
    out.message_sent.push_back(packet.message);
  }
}

}  // namespace

Reliable::Reliable(nic::Rank self, const ReliableConfig& config) : impl_(std::make_unique<Impl>(self, config)) {
  const Status good = check(config);
  SPL_ASSERT(good.ok(), good.error().message);
}

Reliable::~Reliable() = default;

Peer* Reliable::Impl::find(nic::Rank rank) const {
  return rank.value < peers.size() ? peers[rank.value].get() : nullptr;
}

void Reliable::Impl::begin_life(Peer& peer) const {
  peer.room_end = config.window;  // a receiver that has said nothing takes what the sender's own window allows
  peer.congestion_window = std::min(config.window_first, config.window);
}

Status Reliable::add_peer(nic::Rank rank, uint32_t epoch) {
  Peer* known = impl_->find(rank);
  if (known != nullptr && distance(known->epoch, epoch) <= 0) {
    return fail(Code::invalid, "reliable link: rank ", rank, " is known in life ", known->epoch, ", life ", epoch,
                " is not later");
  }
  auto peer = std::make_unique<Peer>();
  peer->rank = rank;
  peer->epoch = epoch;
  peer->own_epoch = impl_->config.epoch;
  impl_->begin_life(*peer);
  if (known == nullptr) {
    impl_->order.push_back(peer.get());
  } else {
    *std::find(impl_->order.begin(), impl_->order.end(), known) = peer.get();
    std::erase(impl_->owing, known);
  }
  if (impl_->peers.size() <= rank.value) impl_->peers.resize(size_t{rank.value} + 1);
  impl_->peers[rank.value] = std::move(peer);
  return {};
}

Status Reliable::on_send(Time now, const nic::Packet& packet, const SendOptions& options, Out& out) {
  Peer* peer = impl_->find(packet.target);
  if (peer == nullptr) return fail(Code::invalid, "reliable link: rank ", packet.target, " is not known here");
  if (peer->lost) {
    report_free(packet, options, out);
    return {};
  }
  return impl_->send(now, *peer, packet, options, out);
}

Status Reliable::on_datagram(Time now, std::span<const uint8_t> bytes, Out& out) {
  return impl_->receive(now, bytes, out);
}

void Reliable::on_timer(Time now, Out& out) {
  if (now >= impl_->earliest_ack) impl_->pay(now, now, out);
  if (now < impl_->earliest) return;
  impl_->earliest = Time::never();
  for (Peer* peer : impl_->order) {
    if (peer->deadline <= now) impl_->timeout(now, *peer, out);
    impl_->earliest = std::min(impl_->earliest, peer->deadline);
  }
}

Time Reliable::timer() const { return std::min(impl_->earliest, impl_->earliest_ack); }

void Reliable::acknowledge(Time now, Out& out) { impl_->pay(Time::never(), now, out); }

void Reliable::set_room(Time now, nic::Rank rank, uint32_t segments, Out& out) {
  Peer* peer = impl_->find(rank);
  SPL_ASSERT(peer != nullptr, "rank ", rank, " is not known");
  const bool opens = peer->room == 0 && segments > 0;
  peer->room = std::min(segments, ReliableConfig::window_max);
  if (opens && !peer->lost) impl_->acknowledge(now, *peer, out);
}

uint64_t Reliable::waiting_segments(nic::Rank rank) const {
  const Peer* const peer = impl_->find(rank);
  return peer == nullptr || peer->lost ? 0 : peer->waiting.size() + peer->answers.size();
}

uint32_t Reliable::congestion_window(nic::Rank rank) const {
  const Peer* const peer = impl_->find(rank);
  return peer == nullptr ? 0 : peer->congestion_window;
}

void Reliable::set_parted(Time now, nic::Rank rank, bool parted) {
  Peer* const peer = impl_->find(rank);
  if (peer == nullptr || !peer->lost || !impl_->config.returns) return;
  if (std::exchange(peer->parted, parted) == parted) return;
  if (parted && peer->deadline == Time::never()) impl_->set_deadline(*peer, now);
}

void Reliable::note_moved(nic::Rank rank) {
  if (Peer* const peer = impl_->find(rank)) ++peer->moved;
}

Unacknowledged Reliable::unacknowledged(nic::Rank rank) const {
  const Peer* const peer = impl_->find(rank);
  return peer == nullptr ? Unacknowledged{} : Impl::unacknowledged(*peer);
}

Unacknowledged Reliable::Impl::unacknowledged(const Peer& peer) {
  if (peer.lost) return peer.left;
  Unacknowledged left;
  left.moved = peer.moved_there;
  for (const auto* const queue : {&peer.waiting, &peer.answers, &peer.flight}) {
    for (const Segment& segment : *queue) {
      if (segment.acked || segment.probe) continue;
      const bool ack = segment.packet.operation == nic::Operation::ack;
      ++left.segments;
      left.acks += ack ? 1 : 0;
      left.bytes += ack ? 0 : segment.packet.payload.length;
    }
  }
  return left;
}

const ReliableCounts& Reliable::counts() const { return impl_->counts; }

bool Reliable::idle() const {
  return std::all_of(impl_->order.begin(), impl_->order.end(), [](const Peer* peer) {
    return peer->lost || (peer->waiting.empty() && peer->answers.empty() && peer->flight.empty() && peer->held.empty());
  });
}

std::string Reliable::waiting() const {
  std::ostringstream line;
  line << "link of rank " << impl_->self << ":";
  for (const Peer* peer : impl_->order) {
    line << " rank " << peer->rank << (peer->lost ? " is lost, " : ", ") << peer->flight.size()
         << " segments unacknowledged, " << peer->waiting.size() + peer->answers.size() << " wait for the window, "
         << peer->held.size() << " headers wait for message " << peer->expected_message << ";";
  }
  return line.str();
}

}  // namespace spinloom::wire
