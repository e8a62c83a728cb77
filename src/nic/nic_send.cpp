// Outgoing messages: packets, the end of reading, acknowledgements.
#include <algorithm>
#include <utility>

#include "nic/nic_impl.hpp"

namespace spinloom::nic {

// A range of a descriptor's list.
bool Nic::Impl::listed(const DescriptorRef& descriptor, uint64_t offset, uint64_t length) {
  if (!descriptor || !descriptor->list().exists()) return false;
  const uint64_t whole = descriptor->list().length();
  return offset <= whole && length <= whole - offset;
}

// The operation's descriptor may go, as far as it is concerned.
void Nic::Impl::end_operation(Put& put) {
  if (!put.descriptor) return;
  put.descriptor->end();
  put.descriptor.reset();
}

Status Nic::Impl::check_put(const Put& put) const {
  if (put.target == Rank::any()) return fail(Code::invalid, "put: the target must be one rank");
  if (put.local == nullptr && put.length > 0 && !listed(put.descriptor, put.descriptor_offset, put.length)) {
    return fail(Code::invalid, "put: the buffer is null and length is ", put.length);
  }
  if (put.queue.exists() && queues.find(put.queue) == nullptr) {
    return fail(Code::invalid, "put: queue ", put.queue, " does not exist");
  }
  if (put.counter.exists() && counters.find(put.counter) == nullptr) {
    return fail(Code::invalid, "put: counter ", put.counter, " does not exist");
  }
  if (put.ack_request == AckRequest::ack && !put.queue.exists()) {
    return fail(Code::invalid, "put: a full acknowledgement needs an event queue, none was given");
  }
  const bool counts_acks = put.ack_request == AckRequest::ct_ack || put.ack_request == AckRequest::oc_ack;
  if ((counts_acks || put.ct_send) && !put.counter.exists()) {
    return fail(Code::invalid, "put: counting sends or acknowledgements needs a counter, none was given");
  }
  return {};
}

uint32_t Nic::Impl::open_put(const Put& put) {
  const uint32_t slot = outgoing.take(put);
  Outgoing& message = outgoing[slot];
  message.sequence = next_message_sequence++;
  message.ack_wanted = put.ack_request != AckRequest::none;
  return slot;
}

// A short put that nobody is ahead of. Without an acknowledgement nothing of it is left when it has been sent.
bool Nic::Impl::goes_at_once(const Put& put, HerId waits) const {
  return config.at_once_bytes > 0 && put.length <= config.at_once_bytes && put.operation == Operation::put &&
         outbound.empty() && flowing.empty() && !waits.exists() && (put.local != nullptr || put.length == 0);
}

void Nic::Impl::put_at_once(const Put& put, Actions& out) {
  Send& send = out.add<Send>();
  Packet& packet = send.packet;
  send.last = true;
  send.at_once = true;
  send.from_device = put.on_nic;
  send.by_handler = put.by_handler;
  packet.source = rank;
  packet.target = put.target;
  packet.message_length = put.length;
  if (put.length > 0) packet.payload = {PayloadRef::Space::local, put.local, put.length};
  packet.fields.portal_index = put.portal.value;
  packet.fields.user = tables[table_of(put.portal.value)].setup.user;
  packet.fields.match_bits = put.match_bits;
  packet.fields.remote_offset = put.remote_offset;
  packet.fields.hdr_data = put.hdr_data;
  packet.fields.ack_request = put.ack_request;
  if (put.ack_request != AckRequest::none || is_lost(put.target)) {
    const uint32_t slot = open_put(put);
    packet.message = message_id(outgoing[slot].sequence, slot);
    return finish_send(slot, out);
  }
  packet.message = message_id(next_message_sequence++, no_slot);
  if (put.descriptor) put.descriptor->end();
  if (!put.event_send_disable) {
    Event event;
    event.kind = EventKind::send;
    event.user_ptr = put.user_ptr;
    post_event(put.queue, event, out);
  }
  if (put.ct_send) count(put.counter, CounterValue{put.ct_bytes ? put.length : 1, 0}, out);
}

void Nic::Impl::start_put(const Put& put, Actions& out, HerId waits) {
  if (goes_at_once(put, waits)) return put_at_once(put, out);
  const uint32_t slot = open_put(put);
  outgoing[slot].waits = waits;
  // A reply matches nothing, so it need not stand in line behind a header that waits for its bytes: what a get finds
  // would be read when those have come.
  if (put.operation == Operation::reply && waiting_headers > 0) {
    uint32_t left = limits::packets_per_call_max;
    if (emit_read(slot, left, out) == Emitted::all) return;
    emit_due = true;
    return flowing.push(slot);
  }
  if (outbound.empty() && flowing.empty()) {  // nor does this
    uint32_t left = limits::packets_per_call_max;
    if (emit_read(slot, left, out) == Emitted::all) return;
    emit_due = true;
    outbound.push(slot);
    return;
  }
  outbound.push(slot);
  if (is_next(slot)) emit_packets(out);
}

// The next packet of this message is there: whether it can leave now, not behind another message's header.
bool Nic::Impl::is_next(uint32_t slot) {
  Outgoing& message = outgoing[slot];
  if (message.queued) return !outbound.empty() && outbound.front() == slot;
  message.queued = true;
  flowing.push(slot);
  return true;
}

// The packets of messages that go on, then of the oldest message, and of further ones while the call has work left.
// Headers leave in order of the puts, because receivers match in that order. A message whose header has left lets
// others pass while it waits.
void Nic::Impl::emit_packets(Actions& out) {
  emit_due = false;
  uint32_t left = limits::packets_per_call_max;
  while (!flowing.empty() || !outbound.empty()) {
    Fifo<uint32_t>& queue = flowing.empty() ? outbound : flowing;
    const uint32_t slot = queue.front();
    const bool processed = outgoing[slot].processed != no_slot;
    const bool may_wait = outgoing[slot].may_wait;
    const Emitted emitted = processed ? emit_processed(slot, left, out) : emit_read(slot, left, out);
    if (emitted == Emitted::some) {
      emit_due = true;
      return;
    }
    if (emitted == Emitted::waits) {
      if (outgoing[slot].emitted == 0) return;
      outgoing[slot].queued = outgoing[slot].may_wait = false;
    }
    SPL_ASSERT(!may_wait || waiting_headers > 0, "message ", slot);
    if (may_wait) --waiting_headers;
    queue.pop();
  }
}

// A packet that was just made, of this message.
void Nic::Impl::fill_packet(uint32_t slot, Packet& packet) const {
  const Outgoing& message = outgoing[slot];
  const Put& put = message.put;
  packet.operation = put.operation;
  packet.source = rank;
  packet.target = put.target;
  packet.message = message_id(message.sequence, slot);
  packet.message_length = put.length;
  packet.offset = message.emitted;
  if (put.operation == Operation::reply) {
    packet.answers = put.request.reply_to;
    if (packet.is_header()) {
      packet.fields.fail = put.result.fail;
      packet.fields.list = put.result.list;
      packet.fields.manipulated_bytes = put.result.manipulated_bytes;
      packet.fields.remote_offset = put.result.remote_offset;
    }
  } else if (packet.is_header()) {
    packet.fields.portal_index = put.portal.value;
    packet.fields.user = tables[table_of(put.portal.value)].setup.user;
    packet.fields.match_bits = put.match_bits;
    packet.fields.remote_offset = put.remote_offset;
    packet.fields.hdr_data = put.hdr_data;
    packet.fields.ack_request = put.ack_request;
    if (put.operation != Operation::put) packet.fields.request = put.request;
  }
}

// Packets that the driver reads from host memory, or from a handler's.
Nic::Impl::Emitted Nic::Impl::emit_read(uint32_t slot, uint32_t& left, Actions& out) {
  Outgoing& message = outgoing[slot];
  const Put& put = message.put;
  for (; left > 0; --left) {
    const uint64_t length = std::min(config.transfer_bytes, put.length - message.emitted);
    if (message.stream && !packet_is_there(message, length)) return Emitted::waits;
    Send& send = out.add<Send>();
    fill_packet(slot, send.packet);
    send.packet.payload.length = length;
    if (length > 0) {
      send.packet.payload.space = PayloadRef::Space::local;
      if (message.stream) {
        send.pieces = take_pieces(message, length);
      } else if (put.local != nullptr) {
        send.packet.payload.bytes = put.local + message.emitted;
      } else {
        send.pieces = listed_pieces(put, message.emitted, length);
      }
    }
    send.last = send.packet.is_last();
    send.from_device = message.waits.exists() || put.on_nic;
    send.by_handler = put.by_handler;
    message.emitted += length;
    SPL_ASSERT(message.emitted <= put.length, message.emitted, " of ", put.length);
    if (!send.last) continue;
    --left;
    message.stream.reset();
    return Emitted::all;
  }
  return Emitted::some;
}

void Nic::Impl::packet_sent(uint64_t id, Actions& out) {
  const uint32_t slot = static_cast<uint32_t>(id);
  SPL_ASSERT(outgoing.taken(slot), "message ", id);
  const Outgoing& message = outgoing[slot];
  SPL_ASSERT(message_id(message.sequence, slot) == id, "message ", id);
  SPL_ASSERT(message.emitted == message.put.length, "message ", id, " was read before all of it was sent");
  finish_send(slot, out);
}

// The buffer is the host's again.
void Nic::Impl::finish_send(uint32_t slot, Actions& out) {
  Outgoing& message = outgoing[slot];
  const bool lost_target = is_lost(message.put.target) && !message.acked;  // acknowledged is delivered
  if (message.put.operation == Operation::reply) return reply_sent(slot, out);
  SPL_ASSERT(!message.sent, "message ", message_id(message.sequence, slot), " was read twice");
  message.sent = true;
  if (message.waits.exists()) out.add<Resume>(message.waits, uint32_t{0});
  Put& put = message.put;
  if (lost_target && message.failure == Fail::ok) {
    message.failure = Fail::undeliverable;
    if (std::exchange(message.ack_wanted, false) && put.ct_ack && !put.ct_send) {
      count(put.counter, CounterValue{0, 1}, out);
    }
  }
  if (!message.ack_wanted) end_operation(put);
  const bool failed = message.failure != Fail::ok;
  const bool asks = put.operation == Operation::get || put.operation == Operation::fetch_atomic;
  if (failed && asks) lose_fetch(put.request.reply_to, out);
  if (!put.event_send_disable || (failed && put.operation != Operation::get)) {
    Event event;
    event.kind = EventKind::send;
    event.fail = message.failure;
    event.user_ptr = put.user_ptr;
    post_event(put.queue, event, out);
  }
  const uint64_t sent = put.ct_bytes ? put.length : 1;
  if (put.ct_send) count(put.counter, failed ? CounterValue{0, 1} : CounterValue{sent, 0}, out);
  if (message.acked) return finish_ack(slot, out);
  if (!message.ack_wanted) outgoing.give_back(slot);
}

void Nic::Impl::receive_ack(const Packet& packet, Actions& out) {
  const uint32_t slot = static_cast<uint32_t>(packet.message);
  out.work.matched_by_message = true;
  // A peer's packet, not our state: an acknowledgement that nobody waits for is refused, not a bug.
  if (!outgoing.taken(slot) || message_id(outgoing[slot].sequence, slot) != packet.message ||
      outgoing[slot].put.target != packet.source || !outgoing[slot].ack_wanted || outgoing[slot].acked) {
    ++refused_packets;
    return;
  }
  Outgoing& message = outgoing[slot];
  message.acked = true;
  message.ack = outcome_of(packet.fields);
  if (message.sent) finish_ack(slot, out);
}

// The send event comes first, whatever overtook what on the way.
void Nic::Impl::finish_ack(uint32_t slot, Actions& out) {
  Outgoing& message = outgoing[slot];
  Put& put = message.put;
  SPL_ASSERT(message.sent && message.acked, "message ", message_id(message.sequence, slot));
  const Fail failure = static_cast<Fail>(message.ack.fail);
  end_operation(put);
  if (failure == Fail::ok && message.ack.ack_request == AckRequest::none) {  // the entry wants nobody to be told
    outgoing.give_back(slot);
    return;
  }
  if (put.ack_request == AckRequest::ack && (failure != Fail::ok || !put.event_success_disable)) {
    Event event;
    event.kind = EventKind::ack;
    event.fail = failure;
    event.manipulated_bytes = message.ack.manipulated_bytes;
    event.remote_offset = message.ack.remote_offset;
    event.in_overflow = message.ack.list == ListKind::overflow;
    event.user_ptr = put.user_ptr;
    post_event(put.queue, event, out);
  }
  const uint64_t counted = put.ct_bytes ? message.ack.manipulated_bytes : 1;
  if (put.ct_ack) count(put.counter, failure == Fail::ok ? CounterValue{counted, 0} : CounterValue{0, 1}, out);
  outgoing.give_back(slot);
}

void Nic::Impl::send_ack(const Message& message, ListKind list, uint64_t manipulated, Actions& out) {
  if (message.fields.ack_request == AckRequest::none) return;
  SPL_ASSERT(manipulated <= message.requested, manipulated, " of ", message.requested);
  MessageFields& told = add_ack(message.source, message.id, out);
  if (message.ack_disabled) return;
  told.ack_request = message.fields.ack_request;
  told.portal_index = message.fields.portal_index;
  told.remote_offset = message.offset;
  told.manipulated_bytes = manipulated;
  told.fail = static_cast<uint8_t>(message.failure);
  told.list = list;
}

// An acknowledgement whose fields the caller fills; without them the initiator only learns that nothing more will come.
MessageFields& Nic::Impl::add_ack(Rank target, uint64_t message, Actions& out) {
  Send& send = out.add<Send>();
  send.last = true;  // a message of its own
  Packet& packet = send.packet;
  packet.operation = Operation::ack;
  packet.source = rank;
  packet.target = target;
  packet.message = message;
  return packet.fields;
}

}  // namespace spinloom::nic
