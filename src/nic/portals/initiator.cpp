// Outgoing messages: packets, the end of reading, acknowledgements, peers that are gone.
#include "nic/portals/initiator.hpp"

#include <algorithm>
#include <utility>

namespace spinloom::nic {
namespace {

// Releases the operation's hold on its descriptor.
void end_operation(Put& put) {
  if (!put.descriptor) return;
  put.descriptor->end();
  put.descriptor.reset();
}

}  // namespace

Initiator::Initiator(Rank rank, const NicLimits& config, const Parts& parts)
    : rank_(rank),
      config_(config),
      queues_(parts.queues),
      triggers_(parts.triggers),
      portals_(parts.portals),
      contexts_(parts.contexts),
      executions_(parts.executions),
      dmas_(parts.dmas),
      memory_(parts.memory),
      buffer_(config.outbound_packets, config.payload_bytes) {}

Status Initiator::check(const Put& put) const {
  if (put.target == Rank::any()) return fail(Code::invalid, "put: the target must be one rank");
  if (put.local == nullptr && put.length > 0 && !list_contains(put.descriptor, put.descriptor_offset, put.length)) {
    return fail(Code::invalid, "put: the buffer is null and length is ", put.length);
  }
  if (put.queue.exists() && !queues_.exists(put.queue)) {
    return fail(Code::invalid, "put: queue ", put.queue, " does not exist");
  }
  if (put.counter.exists() && !triggers_.exists(put.counter)) {
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

uint32_t Initiator::open_message(const Put& put) {
  const auto [slot, message] = outgoing_.make(put);
  message.sequence = static_cast<uint32_t>(next_sequence_++);
  message.ack_wanted = put.ack_request != AckRequest::none;
  if (put.local == nullptr && put.descriptor) {
    message.list = put.descriptor->list();
    message.list_offset = put.descriptor_offset;
  }
  return slot;
}

// True for a short put of contiguous bytes that has no message ahead of it and that no handler waits for. If it wants
// no acknowledgement and its target is not lost, it leaves no state behind.
bool Initiator::goes_at_once(const Put& put, const Origin& origin) const {
  return config_.at_once_bytes > 0 && put.length <= config_.at_once_bytes && outbound_.empty() && flowing_.empty() &&
         !origin.waiting_handler.exists() && (put.local != nullptr || put.length == 0);
}

void Initiator::put_at_once(const Put& put, const Origin& origin, Actions& out) {
  Send& send = out.add<Send>();
  Packet& packet = send.packet;
  send.last = true;
  send.at_once = true;
  send.from_device = origin.on_nic;
  send.by_handler = origin.by_handler;
  packet.source = rank_;
  packet.target = put.target;
  packet.message_length = put.length;
  if (put.length > 0) packet.payload = {PayloadRef::Space::local, put.local, put.length};
  packet.fields.portal_index = put.portal.value;
  packet.fields.user = portals_.user_of(put.portal);
  packet.fields.match_bits = put.match_bits;
  packet.fields.remote_offset = put.remote_offset;
  packet.fields.hdr_data = put.hdr_data;
  packet.fields.ack_request = put.ack_request;
  if (put.ack_request != AckRequest::none || is_lost(put.target)) {
    const uint32_t slot = open_message(put);
    packet.message = message_name(outgoing_[slot].sequence, slot);
    return finish(slot, out);
  }
  packet.message = message_name(next_sequence_++, no_slot);
  if (put.descriptor) put.descriptor->end();
  tell_sent(put, Fail::ok, false, out);
  if (put.ct_send) triggers_.count(put.counter, CounterValue{put.ct_bytes ? put.length : 1, 0}, out);
}

void Initiator::put(const Put& put, Actions& out, const Origin& origin) {
  if (put.sparse && !is_source_accessible(put)) return refuse(open_message(put), out);
  if (goes_at_once(put, origin)) return put_at_once(put, origin, out);
  const uint32_t slot = open_message(put);
  outgoing_[slot].origin = origin;
  start(slot, out);
}

bool Initiator::is_source_accessible(const Put& put) const {
  if (put.local != nullptr) return is_accessible(put.sparse, put.local, put.length, Access::read);
  if (!put.sparse || memory_ == nullptr || put.length == 0) return true;
  return memory_->reaches(put.descriptor->list(), put.descriptor_offset, put.length, Access::read);
}

// Ends a message whose memory is not there: nothing of it leaves.
void Initiator::refuse(uint32_t slot, Actions& out) {
  end_unsent(outgoing_[slot], Fail::segv);
  finish(slot, out);
}

// Fails a message that never arrives: its acknowledgement never comes.
void Initiator::end_unsent(Outgoing& message, Fail reason) {
  message.failure = reason;
  message.ack_lost = std::exchange(message.ack_wanted, false) || message.ack_lost;
}

// Posts the send event. Where send events are disabled, the event of an acknowledgement that was asked for and never
// comes reports the failure in its place.
void Initiator::tell_sent(const Put& put, Fail failure, bool ack_lost, Actions& out) {
  const bool is_ack = put.event_send_disable;
  if (is_ack && !(ack_lost && put.ack_request == AckRequest::ack)) return;
  if (failure == Fail::ok && put.event_success_disable) return;
  Event event;
  event.kind = is_ack ? EventKind::ack : EventKind::send;
  event.fail = failure;
  event.user_ptr = put.user_ptr;
  queues_.post(put.queue, event, out);
}

// A reply matches nothing, so it does not queue behind a header that waits for its bytes. If it did, the get would
// read memory only when those bytes have come.
void Initiator::reply(const Reply& reply, Actions& out) {
  Put put;
  put.target = reply.target;
  put.local = reply.local;
  put.length = reply.length;
  put.user_ptr = reply.user_ptr;
  put.event_send_disable = true;
  const uint32_t slot = open_message(put);
  Outgoing& message = outgoing_[slot];
  message.operation = Operation::reply;
  message.origin.on_nic = reply.on_nic;
  message.request.reply_to = reply.answers;
  message.result = reply.result;
  message.list = reply.list;
  message.list_offset = reply.offset;
  if (waiting_headers_ == 0) return start(slot, out);
  uint32_t packets_left = limits::packets_per_call_max;
  if (emit_read(slot, packets_left, out) == EmitResult::all) return;
  emit_due_ = true;
  flowing_.push(slot);
}

void Initiator::start(uint32_t slot, Actions& out) {
  if (outbound_.empty() && flowing_.empty()) {  // no message is ahead
    uint32_t packets_left = limits::packets_per_call_max;
    if (emit_read(slot, packets_left, out) == EmitResult::all) return;
    emit_due_ = true;
    outbound_.push(slot);
    return;
  }
  outbound_.push(slot);
  if (take_turn(slot)) emit(out);
}

// Returns whether the next packet of this message, which is complete, may leave: no other message's header is ahead of
// it. A message that is in no queue is put into `flowing_`.
bool Initiator::take_turn(uint32_t slot) {
  Outgoing& message = outgoing_[slot];
  if (message.queued) return !outbound_.empty() && outbound_.front() == slot;
  message.queued = true;
  flowing_.push(slot);
  return true;
}

// Sends packets of messages whose header has left, then of the oldest message, then of further messages, while the
// call may do more work. Headers leave in the order of the puts, because receivers match in that order. A message
// whose header has left lets others pass while it waits.
void Initiator::emit(Actions& out) {
  emit_due_ = false;
  uint32_t packets_left = limits::packets_per_call_max;
  while (!flowing_.empty() || !outbound_.empty()) {
    Fifo<uint32_t>& queue = flowing_.empty() ? outbound_ : flowing_;
    const uint32_t slot = queue.front();
    const bool is_filled = outgoing_[slot].process_put != no_slot;
    const bool may_wait = outgoing_[slot].may_wait;
    const EmitResult emitted =
        is_filled ? emit_process_put(slot, packets_left, out) : emit_read(slot, packets_left, out);
    if (emitted == EmitResult::some) {
      emit_due_ = true;
      return;
    }
    if (emitted == EmitResult::waits) {
      if (outgoing_[slot].emitted == 0) return;
      outgoing_[slot].queued = outgoing_[slot].may_wait = false;
    }
    SPL_ASSERT(!may_wait || waiting_headers_ > 0, "message ", slot);
    if (may_wait) --waiting_headers_;
    queue.pop();
  }
}

// Fills in a new packet of this message.
void Initiator::make_packet(uint32_t slot, Packet& packet) const {
  const Outgoing& message = outgoing_[slot];
  const Put& put = message.put;
  packet.operation = message.operation;
  packet.source = rank_;
  packet.target = put.target;
  packet.message = message_name(message.sequence, slot);
  packet.message_length = put.length;
  packet.offset = message.emitted;
  if (message.operation == Operation::reply) {
    packet.answers = message.request.reply_to;
    if (packet.is_header()) {
      packet.fields.fail = message.result.fail;
      packet.fields.list = message.result.list;
      packet.fields.manipulated_bytes = message.result.manipulated_bytes;
      packet.fields.remote_offset = message.result.remote_offset;
    }
  } else if (packet.is_header()) {
    packet.fields.portal_index = put.portal.value;
    packet.fields.user = portals_.user_of(put.portal);
    packet.fields.match_bits = put.match_bits;
    packet.fields.remote_offset = put.remote_offset;
    packet.fields.hdr_data = put.hdr_data;
    packet.fields.ack_request = put.ack_request;
    if (message.operation != Operation::put) packet.fields.request = message.request;
  }
}

// Sends packets that the driver reads from host memory or from a handler's memory.
Initiator::EmitResult Initiator::emit_read(uint32_t slot, uint32_t& packets_left, Actions& out) {
  Outgoing& message = outgoing_[slot];
  const Put& put = message.put;
  for (; packets_left > 0; --packets_left) {
    const uint64_t length = std::min(config_.transfer_bytes, put.length - message.emitted);
    if (message.stream && !is_next_packet_complete(message, length)) return EmitResult::waits;
    Send& send = out.add<Send>();
    make_packet(slot, send.packet);
    send.packet.payload.length = length;
    if (length > 0) {
      send.packet.payload.space = PayloadRef::Space::local;
      if (message.stream) {
        send.pieces = take_pieces(message, length);
      } else if (put.local != nullptr) {
        send.packet.payload.bytes = put.local + message.emitted;
      } else {
        for (const IovecElement& piece : pieces_of(message.list, message.list_offset + message.emitted, length)) {
          send.pieces.push_back({PayloadRef::Space::local, piece.base, piece.length});
        }
      }
    }
    send.last = send.packet.is_last();
    send.from_device = message.origin.on_nic;
    send.by_handler = message.origin.by_handler;
    message.emitted += length;
    SPL_ASSERT(message.emitted <= put.length, message.emitted, " of ", put.length);
    if (!send.last) continue;
    --packets_left;
    message.stream.reset();
    return EmitResult::all;
  }
  return EmitResult::some;
}

std::optional<uint64_t> Initiator::packet_sent(uint64_t id, Actions& out) {
  const auto slot = static_cast<uint32_t>(id);
  SPL_ASSERT(outgoing_.is_taken(slot), "message ", id);
  const Outgoing& message = outgoing_[slot];
  SPL_ASSERT(message_name(message.sequence, slot) == id, "message ", id);
  SPL_ASSERT(message.emitted == message.put.length, "message ", id, " was read before all of it was sent");
  if (message.operation == Operation::reply) {
    const uint64_t user_ptr = message.put.user_ptr;
    outgoing_.give_back(slot);
    return user_ptr;
  }
  finish(slot, out);
  return std::nullopt;
}

// The driver has read the buffer, which belongs to the host again.
void Initiator::finish(uint32_t slot, Actions& out) {
  Outgoing& message = outgoing_[slot];
  const bool lost_target = is_lost(message.put.target) && !message.acked;  // an acknowledged message was delivered
  SPL_ASSERT(!message.sent, "message ", message_name(message.sequence, slot), " was read twice");
  message.sent = true;
  if (message.origin.waiting_handler.exists()) out.add<Resume>(message.origin.waiting_handler, uint32_t{0});
  Put& put = message.put;
  if (lost_target) end_unsent(message, message.failure == Fail::ok ? Fail::undeliverable : message.failure);
  if (!message.ack_wanted) end_operation(put);
  const bool failed = message.failure != Fail::ok;
  const bool expects_reply = message.operation == Operation::get || message.operation == Operation::fetch_atomic;
  tell_sent(put, message.failure, message.ack_lost, out);
  const uint64_t successes = put.ct_bytes ? put.length : 1;
  if (put.ct_send) triggers_.count(put.counter, failed ? CounterValue{0, 1} : CounterValue{successes, 0}, out);
  // A lost acknowledgement counts as a failure, unless the send has counted it.
  if (message.ack_lost && put.ct_ack && !put.ct_send) triggers_.count(put.counter, CounterValue{0, 1}, out);
  if (failed && expects_reply) lose_fetch(message.request.reply_to, message.failure, out);
  if (message.acked) return finish_ack(slot, out);
  if (!message.ack_wanted) outgoing_.give_back(slot);
}

bool Initiator::take_ack(const Packet& packet, Actions& out) {
  const auto slot = static_cast<uint32_t>(packet.message);
  if (!outgoing_.is_taken(slot) || message_name(outgoing_[slot].sequence, slot) != packet.message ||
      outgoing_[slot].put.target != packet.source || !outgoing_[slot].ack_wanted || outgoing_[slot].acked) {
    return false;
  }
  Outgoing& message = outgoing_[slot];
  message.acked = true;
  message.ack = outcome_of(packet.fields);
  if (message.sent) finish_ack(slot, out);
  return true;
}

// The send event comes first, in whatever order the driver reports the two.
void Initiator::finish_ack(uint32_t slot, Actions& out) {
  Outgoing& message = outgoing_[slot];
  Put& put = message.put;
  SPL_ASSERT(message.sent && message.acked, "message ", message_name(message.sequence, slot));
  const Fail failure = static_cast<Fail>(message.ack.fail);
  end_operation(put);
  if (failure == Fail::ok && message.ack.ack_request == AckRequest::none) {  // the entry wants no acknowledgement
    outgoing_.give_back(slot);
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
    queues_.post(put.queue, event, out);
  }
  const uint64_t counted = put.ct_bytes ? message.ack.manipulated_bytes : 1;
  if (put.ct_ack)
    triggers_.count(put.counter, failure == Fail::ok ? CounterValue{counted, 0} : CounterValue{0, 1}, out);
  outgoing_.give_back(slot);
}

MessageFields& Initiator::acknowledge(Rank target, uint64_t message, Actions& out) const {
  Send& send = out.add<Send>();
  send.last = true;  // a message of its own
  Packet& packet = send.packet;
  packet.operation = Operation::ack;
  packet.source = rank_;
  packet.target = target;
  packet.message = message;
  return packet.fields;
}

bool Initiator::is_lost(Rank peer) const {
  return !lost_.empty() && std::find(lost_.begin(), lost_.end(), peer) != lost_.end();
}

// Messages that have not been read from their buffers go on as if the peer were there: the driver reads and discards
// them, and finish() finds that the target is lost. So messages end in one way, whether sent before or after the
// loss.
void Initiator::lose_peer(Rank peer, Actions& out) {
  if (is_lost(peer)) return;
  lost_.push_back(peer);
  // These buffers have been read already; their acknowledgements never come.
  std::vector<uint32_t> waiting;
  outgoing_.for_each([&](uint32_t slot, const Outgoing& message) {
    if (message.put.target == peer && message.sent && message.ack_wanted && !message.acked) waiting.push_back(slot);
  });
  for (const uint32_t slot : waiting) {
    outgoing_[slot].acked = true;
    outgoing_[slot].ack = {};
    outgoing_[slot].ack.fail = static_cast<uint8_t>(Fail::undeliverable);
    finish_ack(slot, out);
  }
  std::vector<uint64_t> names;
  fetches_.for_each([&](uint32_t slot, const Fetch& fetch) {
    if (fetch.target == peer) names.push_back(message_name(fetch.sequence, slot));
  });
  for (const uint64_t name : names) lose_fetch(name, Fail::undeliverable, out);
}

bool Initiator::is_quiescent(Rank peer) const {
  if (!is_lost(peer)) return false;
  bool open = false;
  outgoing_.for_each([&](uint32_t, const Outgoing& message) { open = open || message.put.target == peer; });
  return !open && awaited_replies(peer).count == 0;
}

AwaitedReplies Initiator::awaited_replies(Rank peer) const {
  AwaitedReplies awaited;
  fetches_.for_each([&](uint32_t, const Fetch& fetch) {
    if (fetch.target != peer) return;
    ++awaited.count;
    awaited.bytes_in += fetch.bytes_in;
  });
  return awaited;
}

}  // namespace spinloom::nic
