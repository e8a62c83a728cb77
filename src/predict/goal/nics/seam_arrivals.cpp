// Seam: packets from NICs to ranks at message level.
#include <algorithm>

#include "predict/goal/nics/seam.hpp"

namespace spinloom::goal {

using nic::Operation;

void Seam::on_packet(std::unique_ptr<simulated::Arrival> arrival, Time head) {
  const uint32_t slot = arrivals_.take();
  arrivals_[slot] = std::move(arrival);
  job_.nics.clock().at(head + in_, *this, 0, slot);
}

void Seam::on_event(uint32_t, uint64_t slot) {
  std::unique_ptr<simulated::Arrival> arrival = std::move(arrivals_[static_cast<uint32_t>(slot)]);
  arrivals_.give_back(static_cast<uint32_t>(slot));
  take(std::move(arrival));
}

void Seam::take(std::unique_ptr<simulated::Arrival> arrival) {
  const nic::Packet& packet = arrival->packet;
  switch (packet.operation) {
    case Operation::put: return take_put(packet);
    case Operation::atomic:
    case Operation::fetch_atomic: return take_atomic(std::move(arrival));
    case Operation::get: return take_get(std::move(arrival));
    case Operation::reply: return take_reply(packet);
    case Operation::ack: SPL_ASSERT(false, "nobody asks for acknowledgements");
  }
}

bool Seam::take_part(Incoming& incoming, uint64_t bytes) {
  const auto now = static_cast<uint64_t>(job_.nics.clock().now().ps) - job_.start_ps;
  const uint64_t end = incoming.there + bytes;
  const uint64_t there_ps = engine_.take(now, incoming.event.rank, incoming.there, end, incoming.total);
  incoming.there = end;
  if (end < incoming.total) return false;
  engine_.come(there_ps, incoming.event);
  return true;
}

// Returns the event of an operation of the packet's sender.
Event Seam::event_of(const nic::Packet& packet, uint32_t number, Carried carried) const {
  const uint32_t source = packet.source.value;
  return {.rank = packet.target.value,
          .operation = number,
          .source = source,
          .shape = job_.schedule.program(source).operations[number].shape,
          .carried = carried};
}

uint64_t Seam::window_begin(const nic::Packet& packet) const {
  const Windows& windows = job_.payloads.windows();
  const uint32_t rank = packet.target.value;
  return windows.of(rank)[windows.number_of(rank, static_cast<uint32_t>(packet.fields.match_bits & tag_mask))].begin;
}

void Seam::take_put(nic::Packet packet) {
  const Key key{packet.source.value, packet.message};
  if (packet.is_header()) {
    const bool is_message = packet.fields.portal_index == messages_portal.value;
    const bool is_request = is_message && packet.fields.hdr_data != packet.message_length;
    const Carried carried = is_request ? Carried::request : is_message ? Carried::whole : Carried::put;
    incoming_[key] = {event_of(packet, number_of(packet.fields.match_bits), carried), packet.message_length, 0};
    if (carried == Carried::put) packet.fields.remote_offset += window_begin(packet);
  }
  Incoming& incoming = incoming_.at(key);
  if (incoming.event.carried == Carried::put) {
    hear(packet, job_.nics.clock().now());
  } else {
    check(packet, incoming.event.operation);
  }
  if (!take_part(incoming, packet.payload.length)) return;
  if (incoming.event.carried != Carried::put) --job_.unmatched;  // the engine knows of it now
  incoming_.erase(key);
}

void Seam::check(const nic::Packet& packet, uint32_t number) {
  const Payloads& payloads = job_.payloads;
  if (!payloads.moves() || job_.error) return;
  const uint8_t* const sent = payloads.sent(packet.source.value, number) + packet.offset;
  if (std::equal(sent, sent + packet.payload.length, packet.payload.bytes)) return;
  job_.error = fail(Code::mismatch, "a packet of operation ", number, " of rank ", packet.source, " to rank ",
                    packet.target, " has a wrong byte behind byte ", packet.offset);
}

// Each atomic is one packet. A fetching one is done when it is answered.
void Seam::take_atomic(std::unique_ptr<simulated::Arrival> arrival) {
  nic::Packet packet = arrival->packet;
  const uint32_t number = number_of(packet.fields.match_bits);
  const Key key{packet.source.value, number};
  Incoming& incoming = parts_[key];
  incoming.event = event_of(packet, number, Carried::put);
  incoming.total = job_.costs[incoming.event.shape].size;
  if (packet.operation == Operation::atomic) {
    packet.fields.remote_offset += window_begin(packet);
    hear(packet, job_.nics.clock().now());
  } else {
    held_[key].push_back(std::move(arrival));
  }
  if (take_part(incoming, packet.payload.length)) parts_.erase(key);
}

// The get asks for the bytes of a rendezvous, or is an operation of the sender.
void Seam::take_get(std::unique_ptr<simulated::Arrival> arrival) {
  const nic::Packet& packet = arrival->packet;
  const bool is_bytes = packet.fields.portal_index == bytes_portal.value;
  const uint32_t number =
      is_bytes ? static_cast<uint32_t>(packet.fields.match_bits) : number_of(packet.fields.match_bits);
  Incoming incoming;
  incoming.event = {.rank = packet.target.value,
                    .operation = number,
                    .source = packet.source.value,
                    .carried = is_bytes ? Carried::answer : Carried::ask};
  const uint32_t owner = is_bytes ? packet.target.value : packet.source.value;
  incoming.event.shape = job_.schedule.program(owner).operations[number].shape;
  held_[{owner, number}].push_back(std::move(arrival));
  (void)take_part(incoming, 0);
}

void Seam::take_reply(const nic::Packet& packet) {
  const auto asked = asked_by_name_.find(packet.answers);
  SPL_ASSERT(asked != asked_by_name_.end(), "nobody asked for reply ", packet.answers);
  (void)take_part(asked_[asked->second].incoming, packet.payload.length);
  if (packet.is_last()) asked_by_name_.erase(asked);
  hear(packet, job_.nics.clock().now());
}

}  // namespace spinloom::goal
