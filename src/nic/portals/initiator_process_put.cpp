// Process-puts: messages whose packets are filled by payload handlers of this NIC (SC'19 datatypes paper,
// section 3.1.2).
//
// A packet gets a slot of the outbound buffer, in message order. Then its handler runs like any other; the packet is
// filled when the handler has ended and its DMAs are done. Filled packets leave in message order. A handler that
// fails cuts the message: packets before its own leave, and the last packet says how many bytes will never come.
#include <algorithm>

#include "nic/portals/initiator.hpp"

namespace spinloom::nic {

Status Initiator::check(const ProcessPut& request) const {
  SPL_TRY(check(request.put));
  SPL_ASSIGN(const Context* context, contexts_.get(request.context));
  if (!context->payload_entry) {
    return fail(Code::invalid, "process-put: context ", request.context, " has no payload handler");
  }
  if (context->header_entry || context->completion_entry || context->user_header_bytes > 0) {
    return fail(Code::unsupported, "process-put: context ", request.context,
                " has a header handler, a completion handler or a user header; of outgoing messages, payload handlers "
                "run only");
  }
  return {};
}

void Initiator::process_put(const ProcessPut& request, Actions& out) {
  const uint32_t slot = open_message(request.put);
  if (request.put.length > 0) {  // an empty message has nothing to fill
    Outgoing& message = outgoing_[slot];
    message.process_put = process_puts_.take();
    message.may_wait = true;
    ++waiting_headers_;
    ProcessPutWork& work = process_puts_[message.process_put];
    work.outgoing = slot;
    work.context = request.context;
    work.memory_bytes = request.memory_bytes;
    contexts_.use_by_message(request.context);
    wanting_slots_.push(message.process_put);
  }
  outbound_.push(slot);
  fill_packets(out);
  if (take_turn(slot)) emit(out);
}

// Gives slots to the oldest message that wants some; the handlers of these packets go to the scheduler.
void Initiator::fill_packets(Actions& out) {
  while (!wanting_slots_.empty() && buffer_.has_room()) {
    const uint32_t owner = wanting_slots_.front();
    ProcessPutWork& work = process_puts_[owner];
    const uint64_t message_bytes = outgoing_[work.outgoing].put.length;
    SPL_ASSERT(work.assigned < message_bytes, work.assigned, " of ", message_bytes);
    const uint64_t offset = work.assigned;
    const uint64_t length = std::min<uint64_t>(config_.payload_bytes, message_bytes - offset);
    const OutboundSlotId packet = buffer_.take(work.packets, work.outgoing, offset, length);
    work.assigned += length;
    if (work.assigned == message_bytes) wanting_slots_.pop();

    Execution& execution = executions_.open({OwnerKind::process_put, owner}, HandlerKind::payload, work.context);
    execution.packet_offset = offset;
    execution.outbound = packet.value;
    Her& her = execution.her;
    her.offset = offset;
    her.payload = {PayloadRef::Space::local, buffer_.bytes(packet), length};
    her.message_length = message_bytes;
    her.writes_packet = true;
    her.vhpu = vhpu_of(*contexts_.find(work.context), offset, config_.payload_bytes);
    ++work.hers_open;
    out.add<BufferPacket>(her.id, uint64_t{0});  // the packet is in its slot already
  }
}

void Initiator::packet_filled(OutboundSlotId slot) {
  const uint32_t message = buffer_[slot].message;
  const ProcessPutWork& work = process_puts_[outgoing_[message].process_put];
  if (buffer_.fill(work.packets, slot) && take_turn(message)) emit_due_ = true;
}

Initiator::EmitResult Initiator::emit_process_put(uint32_t slot, uint32_t& packets_left, Actions& out) {
  Outgoing& message = outgoing_[slot];
  ProcessPutWork& work = process_puts_[message.process_put];
  for (; packets_left > 0; --packets_left) {
    if (!buffer_.first_is_filled(work.packets)) return EmitResult::waits;
    const OutboundSlotId id = buffer_.pop(work.packets);
    OutboundBuffer::Packet& packet = buffer_[id];
    SPL_ASSERT(packet.message == slot && packet.offset >= message.emitted, packet.offset, ", ", message.emitted);
    const bool is_cut = packet.offset >= work.cut_offset;
    if (is_cut && (!work.packets.empty() || message.emitted == 0)) {
      buffer_.give_back(id);
      if (!work.packets.empty()) continue;
      // No packet has left, so the target never hears of this message and does not acknowledge it.
      close_process_put(message);
      end_unsent(message, message.failure);
      finish(slot, out);
      fill_packets(out);
      return EmitResult::all;
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
    --packets_left;
    close_process_put(message);
    return EmitResult::all;
  }
  return EmitResult::some;
}

// Closes a message whose handlers have ended and whose DMAs are done.
void Initiator::close_process_put(Outgoing& message) {
  const ProcessPutWork& work = process_puts_[message.process_put];
  SPL_ASSERT(work.hers_open == 0 && work.dmas.open == 0, work.hers_open, " handlers, ", work.dmas.open, " DMAs");
  SPL_ASSERT(work.packets.empty(), "packet ", work.packets.first);
  message.failure = work.failure;
  contexts_.leave_message(work.context);
  process_puts_.give_back(message.process_put);
  message.process_put = no_slot;
}

void Initiator::packet_left(OutboundSlotId id, Actions& out) {
  const OutboundBuffer::Packet packet = buffer_[id];
  buffer_.give_back(id);
  if (packet.last) finish(packet.message, out);
  fill_packets(out);
}

// The target counts every byte, so no packet can be left out: a missing packet ends the message.
void Initiator::cut_message(uint32_t slot, uint64_t offset) {
  ProcessPutWork& work = process_puts_[slot];
  work.stopped = true;
  work.cut_offset = std::min(work.cut_offset, offset);
  if (!wanting_slots_.empty() && wanting_slots_.front() == slot) wanting_slots_.pop();
}

HandlerObjects Initiator::handler_objects(uint32_t slot) const {
  const ProcessPutWork& work = process_puts_[slot];
  const Put& put = outgoing_[work.outgoing].put;
  return {put.portal, put.queue, put.counter, {const_cast<uint8_t*>(put.local), work.memory_bytes}};
}

}  // namespace spinloom::nic
