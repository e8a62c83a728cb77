// Packets that leave: read from host memory, put together from regions of a streaming put, or filled by handlers.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "portals/interface/data_order.hpp"
#include "simulated/node/node.hpp"
#include "simulated/node/node_codes.hpp"

namespace spinloom::simulated {

void Node::perform(const nic::Send& send) {
  if (send.slot.exists()) return send_filled(send);
  if (!send.pieces.empty()) return read_pieces(send);
  const uint64_t message = send.packet.message;
  if (send.packet.operation == nic::Operation::ack) {  // it has no buffer to read, and no message waits for its end
    network_.inject(rank_, {send.packet}, events_.now(), [] {});
    return;
  }
  std::vector<nic::Packet>& packets = outgoing_[message];
  packets.push_back(send.packet);
  if (!send.last) return;
  // Host memory is a PCIe round trip away, and a read stays behind earlier writes.
  const bool reads_host = send.packet.message_length > 0 && !send.from_device;
  Time start = events_.now();
  if (reads_host && portals::is_short_reply(send.packet)) {
    start = std::max(start, after_atomics(packets.front().payload.bytes, send.packet.message_length));
  }
  const Time asked = reads_host ? pcie_.write(start, 0).end : start;
  const Time read_end = reads_host ? asked + pcie_.latency() * 2 : asked;
  const auto length = static_cast<int64_t>(send.packet.message_length);
  const Time ready = send.from_device && length > 0 ? fabric_.send(read_end, length) : read_end;
  uint32_t reply_slot = nic::no_slot;
  if (reads_host && portals::is_short_reply(send.packet)) {  // later writes do not change what the read brings
    reply_slot = short_replies_.take();
    ShortReply& reply = short_replies_[reply_slot];
    reply.source = packets.front().payload.bytes;
    reply.bytes.resize(send.packet.message_length);
    for (nic::Packet& packet : packets) packet.payload.bytes = reply.bytes.data() + packet.offset;
    events_.at(asked, *this, reply_read, reply_slot);
  }
  inject_in_order(std::move(packets), ready, [this, message, reply_slot] {
    if (reply_slot != nic::no_slot) short_replies_.give_back(reply_slot);
    nic::Actions actions;
    nic_.on_packet_sent(message, actions);
    perform(actions);
    if (!inbound_.empty()) parse_next();  // a reply's message may have made room
  });
  outgoing_.erase(message);
}

void Node::read_reply(uint32_t slot) {
  ShortReply& reply = short_replies_[slot];
  std::memcpy(reply.bytes.data(), reply.source, reply.bytes.size());
}

// Sends a packet out of the outbound buffer. Its slot is busy until the last byte is on the link.
void Node::send_filled(const nic::Send& send) {
  const auto length = static_cast<int64_t>(send.packet.payload.length);
  const Time ready = length > 0 && profile_.clustered() ? fabric_.send(events_.now(), length)
                     : length > 0                       ? fabric_.to_host(events_.now(), std::nullopt, length).end
                                                        : events_.now();
  inject_in_order({send.packet}, ready, [this, slot = send.slot] {
    nic::Actions actions;
    nic_.on_packet_left(slot, actions);
    perform(actions);
  });
}

// The requests go out one after another, then the bytes come back one after another: T = requests' first header +
// latency + every region in PCIe packets of its own + latency.
void Node::read_pieces(const nic::Send& send) {
  const uint32_t slot = gathered_.take();
  gathered_[slot] = {send.packet, send.last, send.pieces, {}, departures_begun_ + departures_.size()};
  if (send.packet.operation != nic::Operation::reply) departures_.emplace_back();
  const Time asked = pcie_.write(events_.now(), 0).end + pcie_.latency();
  for (size_t i = 1; i < send.pieces.size(); ++i) (void)pcie_.write(events_.now(), 0);
  events_.at(asked, *this, read_asked, slot);
}

void Node::read_pieces_asked(uint32_t slot) {
  Time end = events_.now();
  for (const nic::PayloadRef& piece : gathered_[slot].pieces) {
    end = pcie_.command(events_.now(), static_cast<int64_t>(piece.length)).end;
  }
  const Time here = end + pcie_.latency();
  statistics_.dma_reads += gathered_[slot].pieces.size();
  statistics_.dma_read_bytes += gathered_[slot].packet.payload.length;
  if (trace_ != nullptr) {
    trace_->span({Track::dma, 0, gathered_[slot].packet.payload.length, events_.now(), here});
  }
  events_.at(here, *this, read_here, slot);
}

void Node::send_gathered(uint32_t slot) {
  Gathered& gathered = gathered_[slot];
  gathered.bytes.resize(gathered.packet.payload.length);
  nic::gather(gathered.pieces, gathered.bytes.data());
  gathered.packet.payload.bytes = gathered.bytes.data();
  const auto sent = [this, slot] {
    const uint64_t message = gathered_[slot].packet.message;
    const bool last = gathered_[slot].last;
    gathered_.give_back(slot);
    if (!last) return;
    nic::Actions actions;
    nic_.on_packet_sent(message, actions);
    perform(actions);
    if (!inbound_.empty()) parse_next();  // a reply's message may have made room
  };
  if (gathered.packet.operation == nic::Operation::reply) {
    return network_.inject(rank_, {gathered.packet}, events_.now(), sent);
  }
  departures_[gathered.departure - departures_begun_] = {true, {gathered.packet}, events_.now(), sent};
  while (!departures_.empty() && departures_.front().is_here) {
    Departure first = std::move(departures_.front());
    departures_.pop_front();
    ++departures_begun_;
    network_.inject(rank_, std::move(first.packets), std::max(first.ready, events_.now()), std::move(first.sent));
  }
}

// Receivers match in the order of puts, so nothing passes a packet whose pieces are still being read, but replies,
// which match nothing.
void Node::inject_in_order(std::vector<nic::Packet> packets, Time ready, std::function<void()> sent) {
  const bool may_pass = departures_.empty() || packets.front().operation == nic::Operation::reply;
  if (may_pass) return network_.inject(rank_, std::move(packets), ready, std::move(sent));
  departures_.push_back({true, std::move(packets), ready, std::move(sent)});
}

}  // namespace spinloom::simulated
