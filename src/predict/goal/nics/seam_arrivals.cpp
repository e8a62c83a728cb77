// Seam: packets from NICs to ranks at message level.
#include <algorithm>

#include "predict/goal/nics/seam.hpp"

namespace spinloom::goal {

using nic::Operation;

void Seam::on_packet(std::unique_ptr<simulated::Arrival> arrival, Time head) {
  const uint32_t slot = arrivals_.take();
  arrivals_[slot] = std::move(arrival);
  job_.nics.clock().at(head + in_latency_, *this, 0, slot);
}

void Seam::on_event(uint32_t, uint64_t slot) {
  std::unique_ptr<simulated::Arrival> arrival = std::move(arrivals_[static_cast<uint32_t>(slot)]);
  arrivals_.give_back(static_cast<uint32_t>(slot));
  dispatch(std::move(arrival));
}

void Seam::dispatch(std::unique_ptr<simulated::Arrival> arrival) {
  const nic::Packet& packet = arrival->packet;
  switch (packet.operation) {
    case Operation::put: return on_put(packet);
    case Operation::atomic:
    case Operation::fetch_atomic: return on_atomic(std::move(arrival));
    case Operation::get: return on_get(std::move(arrival));
    case Operation::reply: return on_reply(packet);
    case Operation::ack: SPL_ASSERT(false, "nobody asks for acknowledgements");
  }
}

bool Seam::receive_part(Incoming& incoming, uint64_t bytes) {
  const auto now = static_cast<uint64_t>(job_.nics.clock().now().ps) - job_.start_ps;
  const uint64_t end = incoming.arrived_bytes + bytes;
  const uint64_t last_byte_ps =
      engine_.receive_part(now, incoming.event.rank, incoming.arrived_bytes, end, incoming.total_bytes);
  incoming.arrived_bytes = end;
  if (end < incoming.total_bytes) return false;
  engine_.add_arrived(last_byte_ps, incoming.event);
  return true;
}

// Returns the event of an operation of the packet's sender.
Event Seam::event_of(const nic::Packet& packet, uint32_t number, MessageKind message_kind) const {
  const uint32_t source = packet.source.value;
  return {.rank = packet.target.value,
          .operation = number,
          .source = source,
          .shape = job_.schedule.program(source).operations[number].shape,
          .message_kind = message_kind};
}

uint64_t Seam::window_begin(const nic::Packet& packet) const {
  const Windows& windows = job_.payloads.windows();
  const uint32_t rank = packet.target.value;
  return windows
      .windows_of(rank)[windows.window_number(rank, static_cast<uint32_t>(packet.fields.match_bits & tag_mask))]
      .begin;
}

void Seam::on_put(nic::Packet packet) {
  const OperationOrMessage id{packet.source.value, packet.message};
  if (packet.is_header()) {
    const bool is_message = packet.fields.portal_index == messages_portal.value;
    const bool is_request = is_message && packet.fields.hdr_data != packet.message_length;
    const MessageKind message_kind = is_request   ? MessageKind::request
                                     : is_message ? MessageKind::eager
                                                  : MessageKind::put;
    incoming_[id] = {event_of(packet, operation_number(packet.fields.match_bits), message_kind), packet.message_length,
                     0};
    if (message_kind == MessageKind::put) packet.fields.remote_offset += window_begin(packet);
  }
  Incoming& incoming = incoming_.at(id);
  if (incoming.event.message_kind == MessageKind::put) {
    process(packet, job_.nics.clock().now());
  } else {
    check(packet, incoming.event.operation);
  }
  if (!receive_part(incoming, packet.payload.length)) return;
  if (incoming.event.message_kind != MessageKind::put) --job_.unmatched;  // the engine knows of it now
  incoming_.erase(id);
}

void Seam::check(const nic::Packet& packet, uint32_t number) {
  const Payloads& payloads = job_.payloads;
  if (!payloads.has_memory() || job_.error) return;
  const uint8_t* const sent = payloads.send_data(packet.source.value, number) + packet.offset;
  if (std::equal(sent, sent + packet.payload.length, packet.payload.bytes)) return;
  job_.error = fail(Code::mismatch, "a packet of operation ", number, " of rank ", packet.source, " to rank ",
                    packet.target, " has a wrong byte behind byte ", packet.offset);
}

// Each atomic is one packet. A fetching one is done when it is answered.
void Seam::on_atomic(std::unique_ptr<simulated::Arrival> arrival) {
  nic::Packet packet = arrival->packet;
  const uint32_t number = operation_number(packet.fields.match_bits);
  const OperationOrMessage id{packet.source.value, number};
  Incoming& incoming = partial_atomics_[id];
  incoming.event = event_of(packet, number, MessageKind::put);
  incoming.total_bytes = job_.costs[incoming.event.shape].size;
  if (packet.operation == Operation::atomic) {
    packet.fields.remote_offset += window_begin(packet);
    process(packet, job_.nics.clock().now());
  } else {
    held_packets_[id].push_back(std::move(arrival));
  }
  if (receive_part(incoming, packet.payload.length)) partial_atomics_.erase(id);
}

// The get asks for the bytes of a rendezvous, or is an operation of the sender.
void Seam::on_get(std::unique_ptr<simulated::Arrival> arrival) {
  const nic::Packet& packet = arrival->packet;
  const bool is_bytes = packet.fields.portal_index == bytes_portal.value;
  const uint32_t number =
      is_bytes ? static_cast<uint32_t>(packet.fields.match_bits) : operation_number(packet.fields.match_bits);
  Incoming incoming;
  incoming.event = {.rank = packet.target.value,
                    .operation = number,
                    .source = packet.source.value,
                    .message_kind = is_bytes ? MessageKind::answer : MessageKind::get_request};
  const uint32_t owner = is_bytes ? packet.target.value : packet.source.value;
  incoming.event.shape = job_.schedule.program(owner).operations[number].shape;
  held_packets_[{owner, number}].push_back(std::move(arrival));
  (void)receive_part(incoming, 0);
}

void Seam::on_reply(const nic::Packet& packet) {
  const auto read = pending_reads_by_request_.find(packet.answers);
  SPL_ASSERT(read != pending_reads_by_request_.end(), "nobody asked for reply ", packet.answers);
  (void)receive_part(pending_reads_[read->second].incoming, packet.payload.length);
  if (packet.is_last()) pending_reads_by_request_.erase(read);
  process(packet, job_.nics.clock().now());
}

}  // namespace spinloom::goal
