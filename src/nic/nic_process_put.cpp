// Process-puts: messages whose packets are filled by payload handlers of this NIC (SC'19 datatypes paper,
// section 3.1.2).
//
// A packet gets a slot of the outbound buffer, in message order, then its handler runs like any other; the packet is
// filled when the handler has ended and its DMAs are done. Filled packets leave in message order. A handler that fails
// cuts the message: packets before its own leave, the last thing sent says how many bytes will never come.
#include <algorithm>

#include "nic/nic_impl.hpp"
#include "spinloom/handler.h"

namespace spinloom::nic {

Status Nic::Impl::check_process_put(const ProcessPut& given) const {
  SPL_TRY(check_put(given.put));
  SPL_ASSIGN(const ContextState* state, contexts.get(given.context));
  const Context& context = state->context;
  if (!context.payload_entry) {
    return fail(Code::invalid, "process-put: context ", given.context, " has no payload handler");
  }
  if (context.header_entry || context.completion_entry || context.user_header_bytes > 0) {
    return fail(Code::unsupported, "process-put: context ", given.context,
                " has a header handler, a completion handler or a user header; of outgoing messages, payload handlers "
                "run only");
  }
  return {};
}

void Nic::Impl::start_process_put(const ProcessPut& given, Actions& out) {
  const uint32_t slot = open_put(given.put);
  Outgoing& message = outgoing[slot];
  if (given.put.length > 0) {  // an empty message has nothing to fill
    message.memory_bytes = given.memory_bytes;
    message.processed = messages.take();
    ++messages_processed;
    Message& handled = messages[message.processed];
    handled.source = rank;
    handled.length = given.put.length;
    handled.path = Path::handlers;
    handled.context = given.context;
    handled.outgoing = slot;
    ++contexts.find(given.context)->messages;
    filling.push(slot);
    message.may_wait = true;
    ++waiting_headers;
  }
  outbound.push(slot);
  fill_packets(out);
  if (is_next(slot)) emit_packets(out);
}

// Slots go to the oldest message that wants some; its handlers go to the scheduler.
void Nic::Impl::fill_packets(Actions& out) {
  while (!filling.empty() && outbound_packets.size() < config.outbound_packets) {
    const uint32_t slot = filling.front();
    Outgoing& message = outgoing[slot];
    SPL_ASSERT(message.processed != no_slot && message.assigned < message.put.length, message.assigned);
    const uint32_t index = outbound_packets.take();
    outbound_packets_peak = std::max(outbound_packets_peak, outbound_packets.size());
    if (index == outbound_bytes.size()) outbound_bytes.push_back(std::make_unique<uint8_t[]>(config.payload_bytes));
    OutboundPacket& packet = outbound_packets[index];
    packet.outgoing = slot;
    packet.offset = message.assigned;
    packet.length = std::min<uint64_t>(config.payload_bytes, message.put.length - message.assigned);
    std::fill_n(outbound_bytes[index].get(), packet.length, uint8_t{0});  // nothing of an earlier message goes out
    (message.packet_last == no_slot ? message.packet_first : outbound_packets[message.packet_last].next) = index;
    message.packet_last = index;
    message.assigned += packet.length;
    if (message.assigned == message.put.length) filling.pop();

    const uint32_t execution = executions.take();
    Execution& filled = executions[execution];
    filled.message = message.processed;
    filled.packet_offset = packet.offset;
    filled.outbound = index;
    Message& handled = messages[message.processed];
    Her& her = filled.her;
    her.id = HerId{execution};
    her.context = handled.context;
    her.offset = packet.offset;
    her.payload = {PayloadRef::Space::local, outbound_bytes[index].get(), packet.length};
    her.message_length = handled.length;
    her.outbound = true;
    if (const auto& policy = contexts.find(handled.context)->context.blocked_round_robin) {
      her.vhpu.value =
          static_cast<uint32_t>(packet.offset / config.payload_bytes / policy->packets_in_row % policy->vhpus);
    }
    ++handled.hers_open;
    ++hers_waiting;
    out.add<BufferPacket>(her.id, uint64_t{0});  // it is in its slot already
  }
}

// The handler has ended, or will never start, and nothing writes to the packet any more.
void Nic::Impl::packet_filled(uint32_t index) {
  OutboundPacket& packet = outbound_packets[index];
  SPL_ASSERT(!packet.filled, "packet ", index, " is filled twice");
  packet.filled = true;
  if (outgoing[packet.outgoing].packet_first == index && is_next(packet.outgoing)) emit_due = true;
}

Nic::Impl::Emitted Nic::Impl::emit_processed(uint32_t slot, uint32_t& left, Actions& out) {
  Outgoing& message = outgoing[slot];
  for (; left > 0; --left) {
    const uint32_t index = message.packet_first;
    if (index == no_slot || !outbound_packets[index].filled) return Emitted::waits;
    OutboundPacket& packet = outbound_packets[index];
    SPL_ASSERT(packet.outgoing == slot && packet.offset >= message.emitted, packet.offset, ", ", message.emitted);
    const bool is_cut = packet.offset >= messages[message.processed].cut;
    message.packet_first = packet.next;
    if (packet.next == no_slot) message.packet_last = no_slot;
    if (is_cut && (packet.next != no_slot || message.emitted == 0)) {
      outbound_packets.give_back(index);
      if (message.packet_first != no_slot) continue;
      // Nothing has left: the target never hears of this message, and nobody acknowledges it.
      close_processed(message);
      if (message.ack_wanted && message.put.ct_ack) count(message.put.counter, CounterValue{0, 1}, out);
      message.ack_wanted = false;
      finish_send(slot, out);
      fill_packets(out);
      return Emitted::all;
    }
    Send& send = out.add<Send>();
    fill_packet(slot, send.packet);
    if (is_cut) {  // the last of its packets, and they are all cut
      send.packet.missing = message.put.length - message.emitted;
      message.emitted = message.put.length;
    } else {
      send.packet.payload = {PayloadRef::Space::local, outbound_bytes[index].get(), packet.length};
      message.emitted += packet.length;
    }
    packet.last = message.emitted == message.put.length;
    send.last = packet.last;
    send.slot = OutboundSlotId{index};
    if (!packet.last) continue;
    --left;
    close_processed(message);
    return Emitted::all;
  }
  return Emitted::some;
}

// Its handlers have ended and their DMAs are done.
void Nic::Impl::close_processed(Outgoing& message) {
  const Message& handled = messages[message.processed];
  SPL_ASSERT(handled.hers_open == 0 && handled.dma_first == no_slot, handled.hers_open, " handlers are open");
  SPL_ASSERT(message.packet_first == no_slot && messages_processed > 0, messages_processed);
  message.failure = handled.failure;
  --contexts.find(handled.context)->messages;
  messages.give_back(message.processed);
  message.processed = no_slot;
  --messages_processed;
}

void Nic::Impl::packet_left(OutboundSlotId id, Actions& out) {
  const OutboundPacket packet = outbound_packets[id.value];
  SPL_ASSERT(packet.filled, "packet ", id, " left before its handler had ended");
  outbound_packets.give_back(id.value);
  if (packet.last) finish_send(packet.outgoing, out);
  fill_packets(out);
}

// The target counts on every byte, so a packet cannot be dropped: whatever is not SUCCESS cuts the message here.
void Nic::Impl::outbound_handler_done(uint32_t index, HandlerEnd end, uint32_t code, Actions& out) {
  Execution& execution = executions[index];
  Message& message = messages[execution.message];
  if (end != HandlerEnd::returned || code != SUCCESS) {
    fail_message(message, end, code);
    cut(index);
  }
  execution.stage = Stage::ended;
  free_hpu(execution, out);
  SPL_ASSERT(message.hers_open > 0, "message ", message.id);
  --message.hers_open;
  release_execution(index);
}

// The packet that this handler fills, or should have, does not leave, nor does any after it. No further one starts.
void Nic::Impl::cut(uint32_t index) {
  const Execution& execution = executions[index];
  Message& message = messages[execution.message];
  SPL_ASSERT(message.outgoing != no_slot, "message ", message.id, " is incoming");
  message.stopped = true;
  message.cut = std::min(message.cut, execution.packet_offset);
  if (!filling.empty() && filling.front() == message.outgoing) filling.pop();
}

Nic::Impl::Offer Nic::Impl::offer_of(const Message& message) const {
  if (message.outgoing == no_slot) {
    const Entry& entry = entries[message.entry].entry;
    return {message.portal, portals.find(message.portal)->queue, entry.counter, {entry.start, entry.length}};
  }
  const Outgoing& sent = outgoing[message.outgoing];
  return {sent.put.portal, sent.put.queue, sent.put.counter, {const_cast<uint8_t*>(sent.put.local), sent.memory_bytes}};
}

}  // namespace spinloom::nic
