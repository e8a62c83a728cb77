// Operations of a running handler on other NICs: puts, gets, atomics (docs/handlers.md has the table). They count as
// the host's, with the portal table entry, queue and counter of the handler's entry.
#include "nic/portals/nic_impl.hpp"
#include "spinloom/handler.h"

namespace spinloom::nic {
namespace {

constexpr uint32_t put_options = PTL_HANDLER_HOST_MEM | PTL_LOCAL_ME_CT | PTL_ME_ACK;
constexpr uint32_t get_options = PTL_HANDLER_HOST_MEM | PTL_LOCAL_ME_CT;

// A handler that sends from the device goes on when the bytes have been read.
Origin origin_of(HerId her, const HandlerCall& call) {
  const bool on_nic = !is_from_host(call.call);
  return {.by_handler = true, .on_nic = on_nic, .waiting_handler = on_nic && call.length > 0 ? her : HerId{}};
}

CallResult answer(HerId her, uint32_t value, Actions& out, CallResult how = CallResult::performed) {
  out.add<Resume>(her, value);
  return how;
}

}  // namespace

// The address of a call's bytes, if they lie in memory that the call may use.
std::optional<uint8_t*> Nic::Impl::bytes_of(HerId her, const HandlerCall& call, bool writes) const {
  if (is_from_host(call.call))
    return host_range(executions[her].owner, call.options).contiguous(call.offset, call.length);
  const bool fits = writes ? is_hpu_memory(call.local_memory) : is_readable(call.local_memory);
  return call.length == 0 || fits ? std::optional(call.local) : std::nullopt;
}

// A call moves at most one packet from or to handler memory.
bool Nic::Impl::is_too_long(const HandlerCall& call) const {
  return !is_from_host(call.call) && call.length > config.payload_bytes;
}

Put Nic::Impl::put_of(HerId her, const HandlerCall& call, uint8_t* local) const {
  const HandlerObjects objects = handler_objects(executions[her].owner);
  Put put;
  put.local = local;
  put.length = call.length;
  put.target = Rank{call.target};
  put.portal = objects.portal;
  put.match_bits = call.match_bits;
  put.remote_offset = call.remote_offset;
  put.hdr_data = call.hdr_data;
  put.user_ptr = call.user_ptr;
  put.queue = objects.queue;
  put.event_send_disable = true;
  if ((call.options & PTL_LOCAL_ME_CT) != 0 && triggers.exists(objects.counter)) {
    put.counter = objects.counter;
    put.ct_send = true;
  }
  if ((call.options & PTL_ME_ACK) != 0) put.ack_request = AckRequest::ack;
  return put;
}

CallResult Nic::Impl::answer_failed(HerId her, const Error& error, Actions& out) {
  note_failure(error);
  return answer(her, FAIL, out);
}

// A put from handler memory is one packet, which is read before the handler goes on.
CallResult Nic::Impl::put_call(HerId her, const HandlerCall& call, Actions& out) {
  if ((call.options & ~put_options) != 0) return CallResult::stop_handler;
  if (is_too_long(call)) return answer(her, FAIL, out);
  const auto local = bytes_of(her, call, false);
  if (!local) return answer(her, SEGV, out, CallResult::refused);
  const Put put = put_of(her, call, *local);
  if (const Status valid = initiator.check(put); !valid) return answer_failed(her, valid.error(), out);
  const Origin origin = origin_of(her, call);
  const bool waits = origin.waiting_handler.exists();
  initiator.put(put, out, origin);
  return waits ? CallResult::performed : answer(her, SUCCESS, out);
}

// The handlers of the other context read all of the memory from the offset on; the message may be shorter.
CallResult Nic::Impl::process_put_call(HerId her, const HandlerCall& call, Actions& out) {
  if ((call.options & ~put_options) != 0) return CallResult::stop_handler;
  const HostRange range = host_range(executions[her].owner, call.options);
  const uint64_t bytes = call.offset <= range.length ? range.length - call.offset : call.length;
  const auto local = range.contiguous(call.offset, bytes);
  if (!local) return answer(her, SEGV, out, CallResult::refused);
  const ProcessPut request{put_of(her, call, *local), bytes, ContextId{call.context}};
  if (const Status valid = initiator.check(request); !valid) return answer_failed(her, valid.error(), out);
  initiator.process_put(request, out);
  return answer(her, SUCCESS, out);
}

// A get to handler memory is one packet, which is there before the handler goes on.
CallResult Nic::Impl::get_call(HerId her, const HandlerCall& call, Actions& out) {
  if ((call.options & ~get_options) != 0) return CallResult::stop_handler;
  if (is_too_long(call)) return answer(her, FAIL, out);
  const auto local = bytes_of(her, call, true);
  if (!local) return answer(her, SEGV, out, CallResult::refused);
  const Put fields = put_of(her, call, *local);
  Get get;
  get.length = fields.length;
  get.target = fields.target;
  get.portal = fields.portal;
  get.match_bits = fields.match_bits;
  get.remote_offset = fields.remote_offset;
  get.reply.local = *local;
  const bool from_host = is_from_host(call.call);
  if (from_host) {
    get.reply.queue = fields.queue;
    get.reply.user_ptr = fields.user_ptr;
  }
  get.reply.counter = fields.counter;
  get.reply.ct_reply = fields.ct_send;
  if (const Status valid = initiator.check(get); !valid) return answer_failed(her, valid.error(), out);
  initiator.get(get, out, Origin{.by_handler = true, .on_nic = false, .waiting_handler = {}},
                from_host ? HerId{} : her);
  return from_host ? answer(her, SUCCESS, out) : CallResult::performed;
}

CallResult Nic::Impl::atomic_call(HerId her, const HandlerCall& call, Actions& out) {
  const bool fetches_before = call.call == SPL_CALL_FETCH_ATOMIC_FROM_DEVICE;
  if ((call.options & ~(fetches_before ? 0u : put_options)) != 0) return CallResult::stop_handler;
  if (is_too_long(call)) return answer(her, FAIL, out);
  const auto local = bytes_of(her, call, fetches_before);
  if (!local) return answer(her, SEGV, out, CallResult::refused);
  Atomic atomic;
  atomic.put = put_of(her, call, *local);
  atomic.operation = call.atomic;
  atomic.datatype = call.datatype;
  atomic.operand = {call.operand, 0, 0};
  if (fetches_before) {
    atomic.fetch.emplace();
    atomic.fetch->local = *local;
  }
  if (const Status valid = initiator.check(atomic); !valid) return answer_failed(her, valid.error(), out);
  Origin origin = origin_of(her, call);
  if (fetches_before) origin.waiting_handler = {};  // it waits for the reply
  const bool waits = fetches_before || origin.waiting_handler.exists();
  initiator.atomic(atomic, out, origin, fetches_before ? her : HerId{});
  return waits ? CallResult::performed : answer(her, SUCCESS, out);
}

}  // namespace spinloom::nic
