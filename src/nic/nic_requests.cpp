// What a running handler sends to other NICs: puts, gets, atomics (docs/handlers.md has the table). They are the
// host's, with the portal table entry, queue and counter of the handler's entry. A function that returns true stops the
// handler.
#include "nic/nic_impl.hpp"
#include "spinloom/handler.h"

namespace spinloom::nic {
namespace {

constexpr uint32_t put_options = PTL_HANDLER_HOST_MEM | PTL_LOCAL_ME_CT | PTL_ME_ACK;
constexpr uint32_t get_options = PTL_HANDLER_HOST_MEM | PTL_LOCAL_ME_CT;

}  // namespace

// Where the call's bytes are; nothing: the call has been answered.
std::optional<uint8_t*> Nic::Impl::memory_of(uint32_t index, const HandlerCall& call, bool writes, Actions& out) {
  if (!is_from_host(call.call)) {
    if (call.length > config.payload_bytes) {
      out.add<Resume>(HerId{index}, uint32_t{FAIL});
      return std::nullopt;
    }
    const bool fits = writes ? is_hpu_memory(call.local_memory) : is_readable(call.local_memory);
    if (call.length == 0 || fits) return call.local;
  } else {
    const HostRange range = host_range(messages[executions[index].message], call.options);
    if (const auto found = contiguous(range, call.offset, call.length)) return found;
  }
  refuse_call(index, uint32_t{SEGV}, out);
  return std::nullopt;
}

Put Nic::Impl::put_of(uint32_t index, const HandlerCall& call, uint8_t* local) const {
  const Offer offer = offer_of(messages[executions[index].message]);
  Put put;
  put.local = local;
  put.length = call.length;
  put.target = Rank{call.target};
  put.portal = offer.portal;
  put.match_bits = call.match_bits;
  put.remote_offset = call.remote_offset;
  put.hdr_data = call.hdr_data;
  put.user_ptr = call.user_ptr;
  put.queue = offer.queue;
  put.event_send_disable = true;
  put.on_nic = !is_from_host(call.call);
  put.by_handler = true;
  if ((call.options & PTL_LOCAL_ME_CT) != 0 && counters.find(offer.counter) != nullptr) {
    put.counter = offer.counter;
    put.ct_send = true;
  }
  if ((call.options & PTL_ME_ACK) != 0) put.ack_request = AckRequest::ack;
  return put;
}

void Nic::Impl::answer_failed(uint32_t index, const Error& error, Actions& out) {
  note_failure(error);
  out.add<Resume>(HerId{index}, uint32_t{FAIL});
}

// One from the device is a packet whose bytes are read before the handler goes on.
bool Nic::Impl::put_call(uint32_t index, const HandlerCall& call, Actions& out) {
  if ((call.options & ~put_options) != 0) return true;
  const auto local = memory_of(index, call, false, out);
  if (!local) return false;
  const Put put = put_of(index, call, *local);
  if (const Status good = check_put(put); !good) {
    answer_failed(index, good.error(), out);
    return false;
  }
  const bool waits = put.on_nic && call.length > 0;
  start_put(put, out, waits ? HerId{index} : HerId{});
  if (!waits) out.add<Resume>(HerId{index}, uint32_t{SUCCESS});
  return false;
}

// One to the device is a packet whose bytes are there before the handler goes on.
bool Nic::Impl::get_call(uint32_t index, const HandlerCall& call, Actions& out) {
  if ((call.options & ~get_options) != 0) return true;
  const auto local = memory_of(index, call, true, out);
  if (!local) return false;
  const Put like = put_of(index, call, *local);
  Get get;
  get.length = like.length;
  get.target = like.target;
  get.portal = like.portal;
  get.match_bits = like.match_bits;
  get.remote_offset = like.remote_offset;
  get.reply.local = *local;
  if (!like.on_nic) {
    get.reply.queue = like.queue;
    get.reply.user_ptr = like.user_ptr;
  }
  get.reply.counter = like.counter;
  get.reply.ct_reply = like.ct_send;
  if (const Status good = check_get(get); !good) {
    answer_failed(index, good.error(), out);
    return false;
  }
  start_get(get, out, like.on_nic ? HerId{index} : HerId{}, true);
  if (!like.on_nic) out.add<Resume>(HerId{index}, uint32_t{SUCCESS});
  return false;
}

bool Nic::Impl::atomic_call(uint32_t index, const HandlerCall& call, Actions& out) {
  const bool fetches_before = call.call == SPL_CALL_FETCH_ATOMIC_FROM_DEVICE;
  if ((call.options & ~(fetches_before ? 0u : put_options)) != 0) return true;
  const auto local = memory_of(index, call, fetches_before, out);
  if (!local) return false;
  Atomic atomic;
  atomic.put = put_of(index, call, *local);
  atomic.operation = call.atomic;
  atomic.datatype = call.datatype;
  atomic.operand = {call.operand, 0, 0};
  if (fetches_before) {
    atomic.fetch.emplace();
    atomic.fetch->local = *local;
  }
  if (const Status good = check_atomic(atomic); !good) {
    answer_failed(index, good.error(), out);
    return false;
  }
  const HerId her{index};
  const bool source_waits = !fetches_before && atomic.put.on_nic && call.length > 0;
  start_atomic(atomic, out, source_waits ? her : HerId{}, fetches_before ? her : HerId{});
  if (!source_waits && !fetches_before) out.add<Resume>(her, uint32_t{SUCCESS});
  return false;
}

}  // namespace spinloom::nic
