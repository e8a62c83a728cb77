// Gets and atomics: requests to a target, and its replies.
//
// A request travels as a put does. The target answers with a reply (nic_reply.cpp), which is not matched: each of its
// packets carries the name of the request. A Fetch waits until the reply's header packet and all its bytes are here,
// and their DMAs are done; for a request of this NIC to itself, also until the target's part has ended.
#include <algorithm>
#include <utility>

#include "nic/portals/initiator.hpp"
#include "spinloom/handler.h"

namespace spinloom::nic {

Status Initiator::check_reply(const char* what, const ReplyTo& reply, uint64_t length) const {
  if (reply.local == nullptr && length > 0 && !list_contains(reply.descriptor, reply.descriptor_offset, length)) {
    return fail(Code::invalid, what, ": the buffer is null and length is ", length);
  }
  if (reply.queue.exists() && !queues_.exists(reply.queue)) {
    return fail(Code::invalid, what, ": queue ", reply.queue, " does not exist");
  }
  if (reply.counter.exists() && !triggers_.exists(reply.counter)) {
    return fail(Code::invalid, what, ": counter ", reply.counter, " does not exist");
  }
  if (reply.ct_reply && !reply.counter.exists()) {
    return fail(Code::invalid, what, ": counting replies needs a counter, none was given");
  }
  return {};
}

Status Initiator::check(const Get& get) const {
  if (get.target == Rank::any()) return fail(Code::invalid, "get: the target must be one rank");
  return check_reply("get", get.reply, get.length);
}

Status Initiator::check(const Atomic& atomic) const {
  const bool fetching = atomic.fetch.has_value();
  const uint64_t limit = std::min(fetching ? config_.fetch_atomic_bytes : config_.atomic_bytes, config_.payload_bytes);
  SPL_TRY(spin::check(atomic.operation, atomic.datatype, atomic.put.length, fetching, limit));
  SPL_TRY(check(atomic.put));
  if (!fetching) return {};
  if (atomic.put.ack_request != AckRequest::none) {
    return fail(Code::invalid, "atomic: one that fetches is answered by its reply, an acknowledgement was asked for");
  }
  return check_reply("atomic", *atomic.fetch, atomic.put.length);
}

uint64_t Initiator::open_fetch(const ReplyTo& reply, Rank target, uint64_t length, HerId waiting_handler) {
  const uint32_t slot = fetches_.take();
  Fetch& fetch = fetches_[slot];
  fetch.reply = reply;
  fetch.target = target;
  fetch.length = length;
  fetch.sequence = static_cast<uint32_t>(next_sequence_);
  fetch.waiting_handler = waiting_handler;
  fetch.target_done = target != rank_;
  return message_name(fetch.sequence, slot);
}

void Initiator::get(const Get& get, Actions& out, const Origin& origin, HerId reply_waits) {
  Put put;
  put.target = get.target;
  put.portal = get.portal;
  put.match_bits = get.match_bits;
  put.remote_offset = get.remote_offset;
  put.event_send_disable = true;
  Request request;
  request.requested_bytes = get.length;
  request.reply_to = open_fetch(get.reply, get.target, get.length, reply_waits);
  send_request(Operation::get, put, request, origin, is_destination_accessible(get.reply, get.length), out);
}

void Initiator::atomic(const Atomic& atomic, Actions& out, const Origin& origin, HerId reply_waits) {
  Request request;
  request.atomic = atomic.operation;
  request.datatype = atomic.datatype;
  request.operand = {atomic.operand[0], atomic.operand[1]};
  request.requested_bytes = atomic.operand[2];
  if (atomic.fetch) {
    request.reply_to = open_fetch(*atomic.fetch, atomic.put.target, atomic.put.length, reply_waits);
  }
  const bool accessible = is_source_accessible(atomic.put) &&
                          (!atomic.fetch || is_destination_accessible(*atomic.fetch, atomic.put.length));
  send_request(atomic.fetch ? Operation::fetch_atomic : Operation::atomic, atomic.put, request, origin, accessible,
               out);
}

// True if the memory that a reply will be written to is there.
bool Initiator::is_destination_accessible(const ReplyTo& reply, uint64_t length) const {
  if (reply.local != nullptr) return is_accessible(reply.sparse, reply.local, length, Access::write);
  if (!reply.sparse || memory_ == nullptr || length == 0) return true;
  return memory_->reaches(reply.descriptor->list(), reply.descriptor_offset, length, Access::write);
}

// `accessible`: all memory of this side is there; otherwise the request does not leave.
void Initiator::send_request(Operation operation, const Put& put, const Request& request, const Origin& origin,
                             bool accessible, Actions& out) {
  const uint32_t slot = open_message(put);
  Outgoing& message = outgoing_[slot];
  message.operation = operation;
  message.request = request;
  message.origin = origin;
  if (!accessible) return refuse(slot, out);
  start(slot, out);
}

bool Initiator::take_reply(const Packet& packet, Actions& out) {
  const auto slot = static_cast<uint32_t>(packet.answers);
  const bool is_expected = fetches_.is_taken(slot) && message_name(fetches_[slot].sequence, slot) == packet.answers &&
                           fetches_[slot].target == packet.source;
  if (!is_expected || packet.message_length > fetches_[slot].length ||
      (packet.is_header() && fetches_[slot].header_in) ||
      packet.payload.length > packet.message_length - fetches_[slot].bytes_in) {
    return false;
  }
  Fetch& fetch = fetches_[slot];
  fetch.reply_bytes = packet.message_length;
  fetch.bytes_in += packet.payload.length;
  if (packet.is_header()) {
    fetch.header_in = true;
    fetch.result = outcome_of(packet.fields);
  }
  if (packet.payload.length > 0) {
    if (fetch.reply.local != nullptr) {
      write_reply(slot, fetch.reply.local + packet.offset, packet.payload, out);
    } else {
      PayloadRef source = packet.payload;
      const uint64_t begin = fetch.reply.descriptor_offset + packet.offset;
      for (const IovecElement& piece : pieces_of(fetch.reply.descriptor->list(), begin, packet.payload.length)) {
        source.length = piece.length;
        write_reply(slot, piece.base, source, out);
        source.bytes += piece.length;
      }
    }
  }
  finish_fetch(slot, out);
  return true;
}

void Initiator::write_reply(uint32_t slot, uint8_t* local, const PayloadRef& source, Actions& out) {
  Fetch& fetch = fetches_[slot];
  const DmaId dma = dmas_.issue_unqueued({OwnerKind::reply, slot});
  ++fetch.dmas_open;
  if (fetch.waiting_handler.exists()) {
    out.add<StorePacket>(dma, local, source, fetch.waiting_handler);
  } else {
    out.add<DmaWrite>(dma, local, source, HerId{});
  }
}

void Initiator::reply_landed(uint32_t slot, Actions& out) {
  SPL_ASSERT(fetches_[slot].dmas_open > 0, "fetch ", slot);
  --fetches_[slot].dmas_open;
  finish_fetch(slot, out);
}

void Initiator::request_served(uint64_t name, Actions& out) {
  const auto slot = static_cast<uint32_t>(name);
  if (!fetches_.is_taken(slot) || fetches_[slot].sequence != name >> 32) return;
  fetches_[slot].target_done = true;
  finish_fetch(slot, out);
}

void Initiator::fail_reply(uint32_t slot, Fail failure) {
  fetches_[slot].result.fail = static_cast<uint8_t>(failure);
  fetches_[slot].result.manipulated_bytes = 0;
}

// Ends a request whose reply never comes, or stops midway. DMAs of bytes that have come are waited for.
void Initiator::lose_fetch(uint64_t name, Fail reason, Actions& out) {
  const auto slot = static_cast<uint32_t>(name);
  if (!fetches_.is_taken(slot) || fetches_[slot].sequence != name >> 32) return;
  Fetch& fetch = fetches_[slot];
  if (fetch.header_in && fetch.bytes_in == fetch.reply_bytes) return;
  fetch.header_in = fetch.target_done = true;
  fetch.reply_bytes = fetch.bytes_in;
  fetch.result = {};
  fetch.result.fail = static_cast<uint8_t>(reason);
  finish_fetch(slot, out);
}

void Initiator::finish_fetch(uint32_t slot, Actions& out) {
  Fetch& fetch = fetches_[slot];
  if (!fetch.header_in || fetch.bytes_in < fetch.reply_bytes || fetch.dmas_open > 0 || !fetch.target_done) return;
  const ReplyTo reply = std::move(fetch.reply);
  if (reply.descriptor) reply.descriptor->end();
  const auto failure = static_cast<Fail>(fetch.result.fail);
  const bool succeeded = failure == Fail::ok;
  if (fetch.waiting_handler.exists()) {
    const bool is_complete = succeeded && fetch.reply_bytes == fetch.length;
    out.add<Resume>(fetch.waiting_handler, uint32_t{is_complete ? SUCCESS : FAIL});
  }
  if (!succeeded || !reply.event_success_disable) {
    Event event;
    event.kind = EventKind::reply;
    event.fail = failure;
    event.manipulated_bytes = fetch.result.manipulated_bytes;
    event.remote_offset = fetch.result.remote_offset;
    event.in_overflow = fetch.result.list == ListKind::overflow;
    event.start = reinterpret_cast<uint64_t>(reply.local);
    event.user_ptr = reply.user_ptr;
    queues_.post(reply.queue, event, out);
  }
  if (reply.ct_reply) {
    const uint64_t success = reply.ct_bytes ? fetch.result.manipulated_bytes : 1;
    triggers_.count(reply.counter, succeeded ? CounterValue{success, 0} : CounterValue{0, 1}, out);
  }
  fetches_.give_back(slot);
}

}  // namespace spinloom::nic
