#include "nic/wire/reliable.hpp"

#include <algorithm>
#include <sstream>

#include "base/limits.hpp"
#include "nic/wire/reliable_impl.hpp"

namespace spinloom::wire {

Status check(const ReliableConfig& config) {
  const size_t bytes_min = datagram_header_bytes + datagram_tag_bytes + packet_header_bytes_max() + 1;
  if (config.datagram_bytes < bytes_min || config.datagram_bytes > limits::datagram_bytes_max) {
    return fail(Code::invalid, "reliable link: datagram_bytes is ", config.datagram_bytes, ", it must be ", bytes_min,
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

void Output::clear() {
  bytes.clear();
  transmit.clear();
  deliver.clear();
  message_sent.clear();
  released.clear();
  lost.clear();
  returned.clear();
  retained.clear();
}

Output::Pieces Output::pieces(const Transmit& transmission) const {
  const size_t head_bytes = transmission.head_bytes;
  const std::span<const uint8_t> head_and_tag(bytes.data() + transmission.at, head_bytes + datagram_tag_bytes);
  if (transmission.payload.empty()) return {head_and_tag, {}, {}};
  return {head_and_tag.first(head_bytes), transmission.payload, head_and_tag.subspan(head_bytes)};
}

std::vector<uint8_t> Output::datagram(const Transmit& transmission) const {
  std::vector<uint8_t> datagram_bytes;
  for (const auto& piece : pieces(transmission))
    datagram_bytes.insert(datagram_bytes.end(), piece.begin(), piece.end());
  return datagram_bytes;
}

namespace {

// A packet to a lost peer goes nowhere; its payload is reported free at once.
void report_free(const nic::Packet& packet, const SendOptions& options, Output& out) {
  const bool is_last = packet.is_last() || packet.missing > 0;
  if (options.ticket != 0) {
    out.released.push_back(options.ticket);
  } else if (is_last && packet.operation != nic::Operation::ack) {
    out.message_sent.push_back(packet.message);
  }
}

}  // namespace

Reliable::Reliable(nic::Rank self, const ReliableConfig& config) : impl_(std::make_unique<Impl>(self, config)) {
  const Status valid = check(config);
  SPL_ASSERT(valid.ok(), valid.error().message);
}

Reliable::~Reliable() = default;

Peer* Reliable::Impl::find(nic::Rank rank) const {
  return rank.value < peers.size() ? peers[rank.value].get() : nullptr;
}

void Reliable::Impl::reset_windows(Peer& peer) const {
  peer.peer_window_end = config.window;  // a receiver that has said nothing takes what the sender's own window allows
  peer.congestion_window = std::min(config.window_first, config.window);
}

Status Reliable::add_peer(nic::Rank rank, uint32_t epoch) {
  Peer* existing = impl_->find(rank);
  if (existing != nullptr && distance(existing->epoch, epoch) <= 0) {
    return fail(Code::invalid, "reliable link: rank ", rank, " is known in life ", existing->epoch, ", life ", epoch,
                " is not later");
  }
  auto peer = std::make_unique<Peer>();
  peer->rank = rank;
  peer->epoch = epoch;
  peer->own_epoch = impl_->config.epoch;
  impl_->reset_windows(*peer);
  if (existing == nullptr) {
    impl_->peers_in_order.push_back(peer.get());
  } else {
    *std::find(impl_->peers_in_order.begin(), impl_->peers_in_order.end(), existing) = peer.get();
    std::erase(impl_->ack_queue, existing);
  }
  if (impl_->peers.size() <= rank.value) impl_->peers.resize(size_t{rank.value} + 1);
  impl_->peers[rank.value] = std::move(peer);
  return {};
}

Status Reliable::on_send(Time now, const nic::Packet& packet, const SendOptions& options, Output& out) {
  Peer* peer = impl_->find(packet.target);
  if (peer == nullptr) return fail(Code::invalid, "reliable link: rank ", packet.target, " is not known here");
  if (peer->lost) {
    report_free(packet, options, out);
    return {};
  }
  return impl_->send(now, *peer, packet, options, out);
}

Status Reliable::on_datagram(Time now, std::span<const uint8_t> bytes, Output& out) {
  return impl_->receive(now, bytes, out);
}

void Reliable::on_timer(Time now, Output& out) {
  if (now >= impl_->earliest_ack) impl_->send_due_acks(now, now, out);
  if (now < impl_->earliest_deadline) return;
  impl_->earliest_deadline = Time::never();
  for (Peer* peer : impl_->peers_in_order) {
    if (peer->deadline <= now) impl_->on_deadline(now, *peer, out);
    impl_->earliest_deadline = std::min(impl_->earliest_deadline, peer->deadline);
  }
}

Time Reliable::timer() const { return std::min(impl_->earliest_deadline, impl_->earliest_ack); }

void Reliable::acknowledge(Time now, Output& out) { impl_->send_due_acks(Time::never(), now, out); }

void Reliable::set_receive_window(Time now, nic::Rank rank, uint32_t segments, Output& out) {
  Peer* peer = impl_->find(rank);
  SPL_ASSERT(peer != nullptr, "rank ", rank, " is not known");
  const bool opens = peer->advertised_window == 0 && segments > 0;
  peer->advertised_window = std::min(segments, ReliableConfig::window_max);
  if (opens && !peer->lost) impl_->acknowledge(now, *peer, out);
}

uint64_t Reliable::waiting_segments(nic::Rank rank) const {
  const Peer* const peer = impl_->find(rank);
  return peer == nullptr || peer->lost ? 0 : peer->waiting_requests.size() + peer->waiting_answers.size();
}

uint32_t Reliable::congestion_window(nic::Rank rank) const {
  const Peer* const peer = impl_->find(rank);
  return peer == nullptr ? 0 : peer->congestion_window;
}

void Reliable::set_quiescent(Time now, nic::Rank rank, bool quiescent) {
  Peer* const peer = impl_->find(rank);
  if (peer == nullptr || !peer->lost || !impl_->config.peers_may_return) return;
  if (std::exchange(peer->quiescent, quiescent) == quiescent) return;
  if (quiescent && peer->deadline == Time::never()) impl_->set_deadline(*peer, now);
}

void Reliable::note_resumed(nic::Rank rank) {
  if (Peer* const peer = impl_->find(rank)) ++peer->own_resume_count;
}

Unacknowledged Reliable::unacknowledged(nic::Rank rank) const {
  const Peer* const peer = impl_->find(rank);
  return peer == nullptr ? Unacknowledged{} : Impl::unacknowledged(*peer);
}

Unacknowledged Reliable::Impl::unacknowledged(const Peer& peer) {
  if (peer.lost) return peer.at_loss;
  Unacknowledged total;
  total.resume_count = peer.peer_resume_count;
  for (const auto* const queue : {&peer.waiting_requests, &peer.waiting_answers, &peer.in_flight}) {
    for (const Segment& segment : *queue) {
      if (segment.acked || segment.is_probe) continue;
      const bool is_ack = segment.packet.operation == nic::Operation::ack;
      ++total.segments;
      total.acks += is_ack ? 1 : 0;
      total.bytes += is_ack ? 0 : segment.packet.payload.length;
    }
  }
  return total;
}

const ReliableCounts& Reliable::counts() const { return impl_->counts; }

bool Reliable::idle() const {
  return std::all_of(impl_->peers_in_order.begin(), impl_->peers_in_order.end(), [](const Peer* peer) {
    return peer->lost || (peer->waiting_requests.empty() && peer->waiting_answers.empty() && peer->in_flight.empty() &&
                          peer->early_headers.empty());
  });
}

std::string Reliable::describe_waiting() const {
  std::ostringstream line;
  line << "link of rank " << impl_->self << ":";
  for (const Peer* peer : impl_->peers_in_order) {
    line << " rank " << peer->rank << (peer->lost ? " is lost, " : ", ") << peer->in_flight.size()
         << " segments unacknowledged, " << peer->waiting_requests.size() + peer->waiting_answers.size()
         << " wait for the window, " << peer->early_headers.size() << " headers wait for message "
         << peer->expected_message_id << ";";
  }
  return line.str();
}

}  // namespace spinloom::wire
