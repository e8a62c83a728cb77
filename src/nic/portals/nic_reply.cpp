// Gets and atomics at their target: the operation on the entry's memory, and the reply.
//
// A message that asks for a reply completes when the reply has been read from its buffer, so that nobody uses the
// entry's memory any more when its event comes.
#include "nic/portals/entry_memory.hpp"
#include "nic/portals/nic_impl.hpp"

namespace spinloom::nic {

// The default action of an atomic. If the entry truncates the message, only whole elements change.
void Nic::Impl::apply_atomic(uint32_t slot, const PayloadRef& payload, uint64_t buffer_bytes, Actions& out) {
  Message& message = messages[slot];
  const Request& request = message.fields.request;
  SPL_ASSERT(message.landing_bytes <= payload.length, message.landing_bytes, " of ", payload.length);
  if (message.landing_bytes == 0) return buffer.release(buffer_bytes);
  ApplyAtomic apply;
  apply.dma = dmas.issue(message.dmas, {OwnerKind::incoming, slot}, buffer_bytes);
  apply.operation = request.atomic;
  apply.datatype = request.datatype;
  apply.operand = {request.operand[0], request.operand[1], request.requested_bytes};
  const ListedEntry& listed = portals.entry(message.entry);
  const IovecView list = list_of(listed);
  if (list.exists()) {
    apply.pieces = pieces_of(list, message.offset, message.landing_bytes);
  } else {
    apply.host = listed.entry.start + message.offset;
  }
  apply.source = payload;
  apply.source.length = message.landing_bytes;
  if (message.operation == Operation::fetch_atomic) {
    message.values_before = std::make_unique<uint8_t[]>(message.landing_bytes);
    apply.before = message.values_before.get();
  }
  out.list.emplace_back(apply);
}

// Sends what the message asked for, as far as its entry gives it; an empty reply if the message failed.
void Nic::Impl::start_reply(uint32_t slot, Actions& out) {
  Message& message = messages[slot];
  SPL_ASSERT(!message.reply_started && message.dmas.open == 0, "message ", message.id);
  message.reply_started = true;
  message.reply_open = true;
  Reply reply;
  reply.target = message.source;
  reply.answers = message.fields.request.reply_to;
  reply.offset = message.offset;
  reply.user_ptr = slot;
  if (message.entry != no_slot && message.failure == Fail::ok) {
    if (message.operation == Operation::get) {
      SPL_ASSERT(message.dropped_bytes <= message.landing_bytes, message.dropped_bytes, " of ", message.landing_bytes);
      reply.length = message.landing_bytes - message.dropped_bytes;
      const ListedEntry& listed = portals.entry(message.entry);
      reply.list = list_of(listed);
      if (!reply.list.exists()) reply.local = listed.entry.start + message.offset;
    } else if (message.values_before) {
      reply.length = message.landing_bytes;
      reply.local = message.values_before.get();
      reply.on_nic = true;
    }
  }
  reply.result.fail = static_cast<uint8_t>(message.failure);
  reply.result.manipulated_bytes = reply.length;
  reply.result.remote_offset = message.offset;
  if (message.entry != no_slot) reply.result.list = portals.entry(message.entry).list;
  initiator.reply(reply, out);
}

void Nic::Impl::reply_sent(uint32_t slot, Actions& out) {
  SPL_ASSERT(messages[slot].reply_open, "message ", slot);
  messages[slot].reply_open = false;
  advance(slot, out);
}

}  // namespace spinloom::nic
