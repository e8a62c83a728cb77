// Process-puts: messages whose packets are filled by payload handlers of this NIC (SC'19 datatypes paper,
// section 3.1.2).
//
// A packet gets a slot of the outbound buffer, in message order. Then its handler runs like any other; the packet is
// filled when the handler has ended and its DMAs are done. Filled packets leave in message order. A handler that
// fails cuts the message: packets before its own leave, and the last packet says how many bytes will never come.
#include <algorithm>

#include "nic/portals/initiator.hpp"

namespace spinloom::nic {

Status Initiator::check(const ProcessPut& given) const {
  SPL_TRY(check(given.put));
  SPL_ASSIGN(const Context* context, contexts_.get(given.context));
  if (!context->payload_entry) {
    return fail(Code::invalid, "process-put: context ", given.context, " has no payload handler");
  }
  if (context->header_entry || context->completion_entry || context->user_header_bytes > 0) {
    return fail(Code::unsupported, "process-put: context ", given.context,
                " has a header handler, a completion handler or a user header; of outgoing messages, payload handlers "
                "run only");
  }
  return {};
}

void Initiator::process_put(const ProcessPut& given, Actions& out) {
  const uint32_t slot = open(given.put);
  if (given.put.length > 0) {  // an empty message has nothing to fill
    Outgoing& message = outgoing_[slot];
    message.filled = filled_.take();
    message.may_wait = true;
    ++waiting_headers_;
    Filled& filled = filled_[message.filled];
    filled.outgoing = slot;
    filled.context = given.context;
    filled.memory_bytes = given.memory_bytes;
    contexts_.use_by_message(given.context);
    filling_.push(message.filled);
  }
  outbound_.push(slot);
  fill_packets(out);
  if (is_next(slot)) emit(out);
}

// Gives slots to the oldest message that wants some; the handlers of these packets go to the scheduler.
void Initiator::fill_packets(Actions& out) {
  while (!filling_.empty() && buffer_.has_room()) {
    const uint32_t owner = filling_.front();
    Filled& filled = filled_[owner];
    const uint64_t message_bytes = outgoing_[filled.outgoing].put.length;
    SPL_ASSERT(filled.assigned < message_bytes, filled.assigned, " of ", message_bytes);
    const uint64_t offset = filled.assigned;
    const uint64_t length = std::min<uint64_t>(config_.payload_bytes, message_bytes - offset);
    const OutboundSlotId packet = buffer_.take(filled.packets, filled.outgoing, offset, length);
    filled.assigned += length;
    if (filled.assigned == message_bytes) filling_.pop();

    Execution& execution = executions_.open({OwnerKind::filled, owner}, HandlerKind::payload, filled.context);
    execution.packet_offset = offset;
    execution.outbound = packet.value;
    Her& her = execution.her;
    her.offset = offset;
    her.payload = {PayloadRef::Space::local, buffer_.bytes(packet), length};
    her.message_length = message_bytes;
    her.writes_packet = true;
    her.vhpu = vhpu_of(*contexts_.find(filled.context), offset, config_.payload_bytes);
    ++filled.hers_open;
    out.add<BufferPacket>(her.id, uint64_t{0});  // the packet is in its slot already
  }
}

void Initiator::packet_filled(OutboundSlotId slot) {
  const uint32_t message = buffer_[slot].message;
  const Filled& filled = filled_[outgoing_[message].filled];
  if (buffer_.fill(filled.packets, slot) && is_next(message)) emit_due_ = true;
}

Initiator::Emitted Initiator::emit_filled(uint32_t slot, uint32_t& left, Actions& out) {
  Outgoing& message = outgoing_[slot];
  Filled& filled = filled_[message.filled];
  for (; left > 0; --left) {
    if (!buffer_.first_is_filled(filled.packets)) return Emitted::waits;
    const OutboundSlotId id = buffer_.pop(filled.packets);
    OutboundBuffer::Packet& packet = buffer_[id];
    SPL_ASSERT(packet.message == slot && packet.offset >= message.emitted, packet.offset, ", ", message.emitted);
    const bool is_cut = packet.offset >= filled.cut;
    if (is_cut && (!filled.packets.empty() || message.emitted == 0)) {
      buffer_.give_back(id);
      if (!filled.packets.empty()) continue;
      // No packet has left, so the target never hears of this message and does not acknowledge it.
      close_filled(message);
      if (message.ack_wanted && message.put.ct_ack) triggers_.count(message.put.counter, CounterValue{0, 1}, out);
      message.ack_wanted = false;
      finish(slot, out);
      fill_packets(out);
      return Emitted::all;
    }
    Send& send = out.add<Send>();
    make_packet(slot, send.packet);
    if (is_cut) {  // the rest of its packets is cut
      send.packet.missing = message.put.length - message.emitted;
      message.emitted = message.put.length;
    } else {
      send.packet.payload = {PayloadRef::Space::local, buffer_.bytes(id), packet.length};
      message.emitted += packet.length;
    }
    packet.last = message.emitted == message.put.length;
    send.last = packet.last;
    send.slot = id;
    if (!packet.last) continue;
    --left;
    close_filled(message);
    return Emitted::all;
  }
  return Emitted::some;
}

// Closes a message whose handlers have ended and whose DMAs are done.
void Initiator::close_filled(Outgoing& message) {
  const Filled& filled = filled_[message.filled];
  SPL_ASSERT(filled.hers_open == 0 && filled.dmas.open == 0, filled.hers_open, " handlers, ", filled.dmas.open,
             " DMAs");
  SPL_ASSERT(filled.packets.empty(), "packet ", filled.packets.first);
  message.failure = filled.failure;
  contexts_.leave_message(filled.context);
  filled_.give_back(message.filled);
  message.filled = no_slot;
}

void Initiator::packet_left(OutboundSlotId id, Actions& out) {
  const OutboundBuffer::Packet packet = buffer_[id];
  buffer_.give_back(id);
  if (packet.last) finish(packet.message, out);
  fill_packets(out);
}

// The target counts every byte, so no packet can be left out: a missing packet ends the message.
void Initiator::cut(uint32_t slot, uint64_t offset) {
  Filled& filled = filled_[slot];
  filled.stopped = true;
  filled.cut = std::min(filled.cut, offset);
  if (!filling_.empty() && filling_.front() == slot) filling_.pop();
}

HandlerOffer Initiator::offer_of(uint32_t slot) const {
  const Filled& filled = filled_[slot];
  const Put& put = outgoing_[filled.outgoing].put;
  return {put.portal, put.queue, put.counter, {const_cast<uint8_t*>(put.local), filled.memory_bytes}};
}

}  // namespace spinloom::nic
