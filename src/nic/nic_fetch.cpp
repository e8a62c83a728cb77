// Gets and atomics: what is asked of a target, what it does with its entry's memory, and the reply.
//
// A request travels as a put does (nic_send); what a target gives back is a reply, which travels as a put does, too,
// but is not matched: every packet of it carries the name of the request that it answers. A Fetch waits for it: until
// its header packet, all its bytes and their DMAs are here. A message that asks for a reply completes when the reply
// has been read from its buffer, so that its entry's memory is free when its event comes.
#include <algorithm>
#include <utility>

#include "nic/nic_impl.hpp"
#include "spinloom/handler.h"

namespace spinloom::nic {
namespace {

constexpr uint64_t name_of_fetch(uint32_t sequence, uint32_t slot) { return uint64_t{sequence} << 32 | slot; }

}  // namespace

// ---- initiator ----

Status Nic::Impl::check_reply(const char* what, const ReplyTo& reply, uint64_t length) const {
  if (reply.local == nullptr && length > 0 && !listed(reply.descriptor, reply.descriptor_offset, length)) {
    return fail(Code::invalid, what, ": the buffer is null and length is ", length);
  }
  if (reply.queue.exists() && queues.find(reply.queue) == nullptr) {
    return fail(Code::invalid, what, ": queue ", reply.queue, " does not exist");
  }
  if (reply.counter.exists() && counters.find(reply.counter) == nullptr) {
    return fail(Code::invalid, what, ": counter ", reply.counter, " does not exist");
  }
  if (reply.ct_reply && !reply.counter.exists()) {
    return fail(Code::invalid, what, ": counting replies needs a counter, none was given");
  }
  return {};
}

Status Nic::Impl::check_get(const Get& get) const {
  if (get.target == Rank::any()) return fail(Code::invalid, "get: the target must be one rank");
  return check_reply("get", get.reply, get.length);
}

Status Nic::Impl::check_atomic(const Atomic& atomic) const {
  const bool fetching = atomic.fetch.has_value();
  const uint64_t limit = std::min(fetching ? config.fetch_atomic_bytes : config.atomic_bytes, config.payload_bytes);
  SPL_TRY(check(atomic.operation, atomic.datatype, atomic.put.length, fetching, limit));
  SPL_TRY(check_put(atomic.put));
  if (!fetching) return {};
  if (atomic.put.ack_request != AckRequest::none) {
    return fail(Code::invalid, "atomic: one that fetches is answered by its reply, an acknowledgement was asked for");
  }
  return check_reply("atomic", *atomic.fetch, atomic.put.length);
}

uint64_t Nic::Impl::open_fetch(const ReplyTo& reply, Rank target, uint64_t length, HerId waits) {
  const uint32_t slot = fetches.take();
  Fetch& fetch = fetches[slot];
  fetch.reply = reply;
  fetch.target = target;
  fetch.length = length;
  fetch.sequence = next_message_sequence;
  fetch.waits = waits;
  return name_of_fetch(fetch.sequence, slot);
}

void Nic::Impl::start_get(const Get& get, Actions& out, HerId waits, bool by_handler) {
  Put request;
  request.by_handler = by_handler;
  request.operation = Operation::get;
  request.target = get.target;
  request.portal = get.portal;
  request.match_bits = get.match_bits;
  request.remote_offset = get.remote_offset;
  request.event_send_disable = true;
  request.request.requested_bytes = get.length;
  request.request.reply_to = open_fetch(get.reply, get.target, get.length, waits);
  start_put(request, out);
}

void Nic::Impl::start_atomic(const Atomic& atomic, Actions& out, HerId source_waits, HerId reply_waits) {
  Put request = atomic.put;
  request.operation = atomic.fetch ? Operation::fetch_atomic : Operation::atomic;
  request.request.atomic = atomic.operation;
  request.request.datatype = atomic.datatype;
  request.request.operand = {atomic.operand[0], atomic.operand[1]};
  request.request.requested_bytes = atomic.operand[2];
  if (atomic.fetch) {
    request.request.reply_to = open_fetch(*atomic.fetch, request.target, atomic.put.length, reply_waits);
  }
  start_put(request, out, source_waits);
}

void Nic::Impl::receive_reply(const Packet& packet, Actions& out) {
  const uint32_t slot = static_cast<uint32_t>(packet.answers);
  out.work.matched_by_message = true;
  // A peer's packet, not our state: a reply that nobody waits for is refused, not a bug.
  const bool known = fetches.taken(slot) && name_of_fetch(fetches[slot].sequence, slot) == packet.answers &&
                     fetches[slot].target == packet.source;
  if (!known || !well_formed(packet) || packet.message_length > fetches[slot].length ||
      (packet.is_header() && fetches[slot].header_in) ||
      packet.payload.length > packet.message_length - fetches[slot].bytes_in) {
    ++refused_packets;
    return;
  }
  Fetch& fetch = fetches[slot];
  fetch.reply_bytes = packet.message_length;
  fetch.bytes_in += packet.payload.length;
  if (packet.is_header()) {
    fetch.header_in = true;
    fetch.result = outcome_of(packet.fields);
  }
  if (packet.payload.length > 0) {
    if (fetch.reply.local != nullptr) {
      land_reply(slot, fetch.reply.local + packet.offset, packet.payload, out);
    } else {
      PayloadRef source = packet.payload;
      const uint64_t begin = fetch.reply.descriptor_offset + packet.offset;
      for (const IovecElement& piece : nic::pieces_of(fetch.reply.descriptor->list(), begin, packet.payload.length)) {
        source.length = piece.length;
        land_reply(slot, piece.base, source, out);
        source.bytes += piece.length;
      }
    }
  }
  finish_fetch(slot, out);
}

void Nic::Impl::land_reply(uint32_t slot, uint8_t* local, const PayloadRef& source, Actions& out) {
  Fetch& fetch = fetches[slot];
  const uint32_t index = dmas.take();
  dmas[index].serial = next_dma_serial++;
  dmas[index].fetch = slot;
  ++fetch.dmas_open;
  if (fetch.waits.exists()) {
    out.add<StorePacket>(DmaId{index}, local, source, fetch.waits);
  } else {
    out.add<DmaWrite>(DmaId{index}, local, source, HerId{});
  }
}

void Nic::Impl::reply_landed(DmaId id, Actions& out) {
  const uint32_t slot = dmas[id.value].fetch;
  dmas.give_back(id.value);
  SPL_ASSERT(fetches[slot].dmas_open > 0, "fetch ", slot);
  --fetches[slot].dmas_open;
  finish_fetch(slot, out);
}

void Nic::Impl::finish_fetch(uint32_t slot, Actions& out) {
  Fetch& fetch = fetches[slot];
  if (!fetch.header_in || fetch.bytes_in < fetch.reply_bytes || fetch.dmas_open > 0) return;
  const ReplyTo reply = std::move(fetch.reply);
  if (reply.descriptor) reply.descriptor->end();
  const auto failure = static_cast<Fail>(fetch.result.fail);
  const bool good = failure == Fail::ok;
  if (fetch.waits.exists()) {
    const bool whole = good && fetch.reply_bytes == fetch.length;
    out.add<Resume>(fetch.waits, uint32_t{whole ? SUCCESS : FAIL});
  }
  if (!good || !reply.event_success_disable) {
    Event event;
    event.kind = EventKind::reply;
    event.fail = failure;
    event.manipulated_bytes = fetch.result.manipulated_bytes;
    event.remote_offset = fetch.result.remote_offset;
    event.in_overflow = fetch.result.list == ListKind::overflow;
    event.start = reinterpret_cast<uint64_t>(reply.local);
    event.user_ptr = reply.user_ptr;
    post_event(reply.queue, event, out);
  }
  if (reply.ct_reply) {
    const uint64_t success = reply.ct_bytes ? fetch.result.manipulated_bytes : 1;
    count(reply.counter, good ? CounterValue{success, 0} : CounterValue{0, 1}, out);
  }
  fetches.give_back(slot);
}

// ---- target ----

// The default action of an atomic. A message that the entry truncates changes the whole elements that it takes.
void Nic::Impl::apply_atomic(uint32_t slot, const PayloadRef& payload, uint64_t buffer_bytes, Actions& out) {
  Message& message = messages[slot];
  const Request& request = message.fields.request;
  SPL_ASSERT(message.landing <= payload.length, message.landing, " of ", payload.length);
  if (message.landing == 0) return buffer_release(buffer_bytes);
  const uint32_t dma = issue_dma(slot, no_slot);
  dmas[dma].buffer_bytes = buffer_bytes;
  ApplyAtomic apply;
  apply.dma = DmaId{dma};
  apply.operation = request.atomic;
  apply.datatype = request.datatype;
  apply.operand = {request.operand[0], request.operand[1], request.requested_bytes};
  const ListedEntry& listed = entries[message.entry];
  const IovecView list = list_of(listed);
  if (list.exists()) {
    apply.pieces = nic::pieces_of(list, message.offset, message.landing);
  } else {
    apply.host = listed.entry.start + message.offset;
  }
  apply.source = payload;
  apply.source.length = message.landing;
  if (message.operation == Operation::fetch_atomic) {
    message.fetched = std::make_unique<uint8_t[]>(message.landing);
    apply.before = message.fetched.get();
  }
  out.list.emplace_back(apply);
}

// What the message asked for, as far as its entry gives it; empty when it failed.
void Nic::Impl::start_reply(uint32_t slot, Actions& out) {
  Message& message = messages[slot];
  SPL_ASSERT(!message.reply_started && message.dmas_open == 0, "message ", message.id);
  message.reply_started = true;
  message.reply_open = true;
  Put reply;
  reply.operation = Operation::reply;
  reply.target = message.source;
  reply.event_send_disable = true;
  reply.request.reply_to = message.fields.request.reply_to;
  reply.user_ptr = slot;
  if (message.entry != no_slot && message.failure == Fail::ok) {
    if (message.operation == Operation::get) {
      SPL_ASSERT(message.dropped_bytes <= message.landing, message.dropped_bytes, " of ", message.landing);
      reply.length = message.landing - message.dropped_bytes;
      const Entry& entry = entries[message.entry].entry;
      if (entry.iovec.empty()) reply.local = entry.start + message.offset;
    } else if (message.fetched) {
      reply.length = message.landing;
      reply.local = message.fetched.get();
      reply.on_nic = true;
    }
  }
  reply.result.fail = static_cast<uint8_t>(message.failure);
  reply.result.manipulated_bytes = reply.length;
  reply.result.remote_offset = message.offset;
  if (message.entry != no_slot) reply.result.list = entries[message.entry].list;
  start_put(reply, out);
}

void Nic::Impl::reply_sent(uint32_t slot, Actions& out) {
  const auto message = static_cast<uint32_t>(outgoing[slot].put.user_ptr);
  outgoing.give_back(slot);
  SPL_ASSERT(messages[message].reply_open, "message ", message);
  messages[message].reply_open = false;
  advance(message, out);
}

}  // namespace spinloom::nic
