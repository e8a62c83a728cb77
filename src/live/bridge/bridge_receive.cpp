// The receiving side of a bridge: frames to forward, and frames for this rank, which are packets, credit and notes.
#include <algorithm>
#include <tuple>
#include <utility>

#include "live/bridge/bridge_peer.hpp"
#include "live/bridge/bridge_transport.hpp"
#include "live/node/futex.hpp"
#include "nic/wire/packet_format.hpp"

namespace spinloom::live {

bool BridgeTransport::take(const nic::Packet& packet) {
  if (!BridgeLinks::is_carrier(packet)) return false;
  if (const auto frame = links_.collect(packet)) take_frame(packet.source, *frame);
  return true;
}

void BridgeTransport::take_frame(nic::Rank hop, std::span<const uint8_t> bytes) {
  const auto frame = wire::read_frame(bytes);
  if (!frame) {
    ++counts_.malformed;
    return;
  }
  if (frame->header.target == rank_) return take_own(hop, *frame, bytes);
  if (!forwarder_) {
    ++counts_.malformed;
    return;
  }
  forwarder_->forward(options_.stores ? monotonic_now() : Time{}, hop, frame->header, bytes);
}

void BridgeTransport::take_own(nic::Rank hop, const wire::BridgeFrame& frame, std::span<const uint8_t> bytes) {
  const wire::BridgeHeader& header = frame.header;
  const nic::Rank source = header.source;
  if (source.value >= peers_.size() || routes_.previous_hop(rank_.value, source.value, rank_.value) != hop.value) {
    ++counts_.malformed;
    return;
  }
  switch (header.kind) {
    case wire::BridgeKind::hello: return;
    case wire::BridgeKind::leave_done: std::erase(unconfirmed_gateways_, source); return;
    case wire::BridgeKind::leave:
      if (!forwarder_) return;
      forwarder_->note_left(source);
      return send_unnumbered(wire::BridgeKind::leave_done, rank_, source);
    default: break;
  }
  Peer* const peer = find(source);
  if (peer == nullptr) {
    ++counts_.malformed;
    return;
  }
  if (header.kind == wire::BridgeKind::source_unreachable && peer->lost) forget(source);
  if (peer->lost) return;
  if (header.kind == wire::BridgeKind::source_unreachable) {
    peer->end_numbers = header.received;
    if (peer->has_ended()) lose(*peer);
    return;
  }
  take_credit(*peer, header);
  if (header.kind != wire::BridgeKind::credit) take_numbered(*peer, frame, bytes);
}

// Frees the window of the frames that the peer has taken.
void BridgeTransport::take_credit(Peer& peer, const wire::BridgeHeader& header) {
  bool room = false;
  for (size_t of = 0; of < peer.flows.size(); ++of) {
    Flow& flow = peer.flows[of];
    if (header.received[of] > flow.next) continue;  // frames that were never sent
    while (!flow.in_flight.empty() && flow.in_flight.front().sequence < header.received[of]) {
      flow.in_flight_bytes -= flow.in_flight.front().bytes;
      flow.in_flight.pop_front();
      room = true;
    }
  }
  // Otherwise the frame is older than one that has come.
  if (header.resume_count - peer.peer_resume_count < uint32_t{1} << 31) peer.peer_resume_count = header.resume_count;
  if (room) flush(peer);
}

void BridgeTransport::take_numbered(Peer& peer, const wire::BridgeFrame& frame, std::span<const uint8_t> bytes) {
  Flow& flow = peer.flow(frame.header.traffic_class);
  const uint64_t sequence = frame.header.sequence;
  if (sequence < flow.expected || flow.early.contains(sequence)) {
    ++counts_.repeated;
    return;
  }
  if (sequence - flow.expected > options_.window_frames) {
    ++counts_.malformed;
    return;
  }
  if (sequence > flow.expected) {
    ++counts_.early;
    flow.early[sequence].assign(bytes.begin(), bytes.end());
    return;
  }
  take_next(peer, frame);
  while (!peer.lost && !flow.early.empty() && flow.early.begin()->first == flow.expected) {
    const std::vector<uint8_t> held = std::move(flow.early.begin()->second);
    flow.early.erase(flow.early.begin());
    const auto next = wire::read_frame(held);
    SPL_ASSERT(next.ok(), "an early frame was one when it came");
    take_next(peer, *next);
  }
}

void BridgeTransport::take_next(Peer& peer, const wire::BridgeFrame& frame) {
  const wire::BridgeHeader& header = frame.header;
  Flow& flow = peer.flow(header.traffic_class);
  ++flow.expected;
  if (header.kind == wire::BridgeKind::bye) return lose(peer, true);
  const auto packet = wire::decode(frame.body);
  const bool good = packet && packet->source == peer.rank && packet->target == rank_ &&
                    packet->is_answer() == (header.traffic_class == wire::BridgeClass::answers);
  if (good) {
    std::ignore = client_.arrived(*this, *packet, 0);
  } else {
    ++counts_.malformed;
  }
  if (peer.lost) return;
  if (peer.has_ended()) return lose(peer);
  if (!peer.stopped || header.traffic_class == wire::BridgeClass::answers) flow.granted = flow.expected;
  flow.unannounced_bytes += frame.body.size();
  const uint64_t unannounced = flow.granted - flow.announced;
  if (unannounced == 0) return;
  if (unannounced * 4 >= options_.window_frames || flow.unannounced_bytes * 4 >= options_.window_bytes) {
    return give_credit(peer);
  }
  if (peer.credit_at != Time::never()) return;
  peer.credit_at = monotonic_now() + options_.credit_after;
  next_credit_at_ = std::min(next_credit_at_, peer.credit_at);
}

}  // namespace spinloom::live
