// What a running handler asks for (docs/handlers.md has the table). A function that returns true stops the handler.
#include "nic/nic_impl.hpp"
#include "spinloom/handler.h"

namespace spinloom::nic {
namespace {

constexpr uint32_t dma_options = PTL_HANDLER_HOST_MEM | PTL_DMA_NO_EVENT;
constexpr uint32_t put_options = PTL_HANDLER_HOST_MEM | PTL_LOCAL_ME_CT | PTL_ME_ACK;

bool is_hpu_memory(LocalMemory memory) { return memory == LocalMemory::state || memory == LocalMemory::stack; }
bool is_readable(LocalMemory memory) {
  return is_hpu_memory(memory) || memory == LocalMemory::packet || memory == LocalMemory::constants;
}

// The stack may be reused before a transfer that nobody waits for has read or written it.
bool outlives(LocalMemory memory, bool blocking) { return blocking || memory != LocalMemory::stack; }

}  // namespace

bool Nic::Impl::handler_call(HerId her, const HandlerCall& call, Actions& out) {
  SPL_ASSERT(executions[her.value].stage == Stage::running, "HER ", her, " calls but does not run");
  switch (call.call) {
    case SPL_CALL_DMA_TO_HOST_NB:
    case SPL_CALL_DMA_TO_HOST_B:
    case SPL_CALL_DMA_FROM_HOST_NB:
    case SPL_CALL_DMA_FROM_HOST_B: return dma_call(her.value, call, out);
    case SPL_CALL_DMA_CAS_NB:
    case SPL_CALL_DMA_CAS_B:
    case SPL_CALL_DMA_FADD_NB:
    case SPL_CALL_DMA_FADD_B: return dma_atomic(her.value, call, out);
    case SPL_CALL_DMA_TEST:
    case SPL_CALL_DMA_WAIT: return dma_wait(her.value, call, out);
    case SPL_CALL_HPU_CAS:
    case SPL_CALL_HPU_FADD: return local_atomic(her.value, call, out);
    case SPL_CALL_CT_INC:
    case SPL_CALL_CT_GET:
    case SPL_CALL_CT_SET: return counter_call(her.value, call, out);
    case SPL_CALL_PUT_FROM_DEVICE:
    case SPL_CALL_PUT_FROM_HOST: return put_call(her.value, call, out);
    case SPL_CALL_DEBUG: return debug_call(her.value, call, out);
    case SPL_CALL_YIELD:  // a hint: this scheduler lets a handler run to its end
      out.list.emplace_back(Resume{her, uint32_t{SUCCESS}});
      return false;
    default: return true;
  }
}

Nic::Impl::HostRange Nic::Impl::host_range(const Message& message, uint32_t options) const {
  if ((options & PTL_HANDLER_HOST_MEM) != 0) {
    const Context& context = contexts.find(message.context)->context;
    return {reinterpret_cast<uint8_t*>(context.handler_host_start), context.handler_host_length};
  }
  if (message.outgoing != no_slot) return offer_of(message).memory;
  const Entry& entry = entries[message.entry].entry;
  return {entry.start, entry.length};
}

// The call is not performed, its message fails, the handler goes on.
void Nic::Impl::refuse_call(uint32_t index, uint32_t answer, Actions& out) {
  Message& message = messages[executions[index].message];
  record_failure(message, Fail::segv);
  if (message.outgoing != no_slot) cut(index);
  out.list.emplace_back(Resume{HerId{index}, answer});
}

bool Nic::Impl::dma_call(uint32_t index, const HandlerCall& call, Actions& out) {
  if ((call.options & ~dma_options) != 0) return true;
  const bool blocking = call.call == SPL_CALL_DMA_TO_HOST_B || call.call == SPL_CALL_DMA_FROM_HOST_B;
  const bool to_host = call.call == SPL_CALL_DMA_TO_HOST_NB || call.call == SPL_CALL_DMA_TO_HOST_B;
  const Message& message = messages[executions[index].message];
  const HostRange range = host_range(message, call.options);
  const bool inside = call.offset <= range.length && call.length <= range.length - call.offset;
  const bool fills = message.outgoing != no_slot && call.local_memory == LocalMemory::packet;
  const bool kind_fits = to_host ? is_readable(call.local_memory) : fills || is_hpu_memory(call.local_memory);
  if (!inside || (call.length > 0 && !(kind_fits && outlives(call.local_memory, blocking)))) {
    refuse_call(index, blocking ? uint32_t{SEGV} : DmaId::none_value, out);
    return false;
  }
  const uint32_t slot = issue_dma(executions[index].message, index);
  Dma& dma = dmas[slot];
  dma.blocks = blocking;
  uint8_t* host = call.length > 0 ? range.start + call.offset : range.start;
  if ((call.options & PTL_DMA_NO_EVENT) == 0) {
    dma.event = true;
    dma.offset = call.offset;
    dma.length = call.length;
    dma.start = reinterpret_cast<uint64_t>(host);
  }
  if (to_host) {
    DmaWrite write{DmaId{slot}, host, {PayloadRef::Space::local, call.local, call.length}, HerId{index}};
    write.blocking = blocking;
    out.list.emplace_back(write);
  } else {
    out.list.emplace_back(DmaRead{DmaId{slot}, host, call.local, call.length, HerId{index}});
  }
  if (!blocking) out.list.emplace_back(Resume{HerId{index}, handle_of(slot)});
  return false;
}

bool Nic::Impl::dma_atomic(uint32_t index, const HandlerCall& call, Actions& out) {
  if ((call.options & ~dma_options) != 0) return true;
  const bool blocking = call.call == SPL_CALL_DMA_CAS_B || call.call == SPL_CALL_DMA_FADD_B;
  const bool swaps = call.call == SPL_CALL_DMA_CAS_NB || call.call == SPL_CALL_DMA_CAS_B;
  const bool width_exists = call.width == 1 || call.width == 2 || call.width == 4 || call.width == 8;
  if (!width_exists || (swaps && call.width != 8)) return true;
  const HostRange range = host_range(messages[executions[index].message], call.options);
  const bool inside = call.offset <= range.length && call.width <= range.length - call.offset;
  const bool aligned = (reinterpret_cast<uint64_t>(range.start + call.offset) & (call.width - 1)) == 0;
  if (!inside || !aligned || !is_hpu_memory(call.local_memory) || !outlives(call.local_memory, blocking)) {
    refuse_call(index, blocking ? uint32_t{SEGV} : DmaId::none_value, out);
    return false;
  }
  const uint32_t slot = issue_dma(executions[index].message, index);
  dmas[slot].blocks = blocking;
  DmaAtomic atomic;
  atomic.dma = DmaId{slot};
  atomic.kind = swaps ? AtomicKind::compare_swap : AtomicKind::fetch_add;
  atomic.host = range.start + call.offset;
  atomic.width = call.width;
  atomic.compare = call.compare;
  atomic.operand = call.operand;
  atomic.before = call.local;
  atomic.her = HerId{index};
  out.list.emplace_back(atomic);
  if (!blocking) out.list.emplace_back(Resume{HerId{index}, handle_of(slot)});
  return false;
}

bool Nic::Impl::dma_wait(uint32_t index, const HandlerCall& call, Actions& out) {
  const uint32_t slot = dma_of(call.handle, index);
  const bool open = slot != no_slot && !dmas[slot].done;
  if (call.call == SPL_CALL_DMA_TEST) {
    out.list.emplace_back(Resume{HerId{index}, open ? 0u : 1u});
  } else if (open) {
    dmas[slot].waited = true;  // answered by its end
  } else {
    out.list.emplace_back(Resume{HerId{index}, uint32_t{SUCCESS}});
  }
  return false;
}

bool Nic::Impl::local_atomic(uint32_t index, const HandlerCall& call, Actions& out) {
  const bool aligned = (reinterpret_cast<uint64_t>(call.local) & 7) == 0;
  if (!aligned) return true;  // a misaligned atomic faults
  const bool before_fits = call.before_memory == LocalMemory::none || is_hpu_memory(call.before_memory);
  if (call.local_memory != LocalMemory::state || !before_fits) {
    refuse_call(index, uint32_t{SEGV}, out);
    return false;
  }
  LocalAtomic atomic;
  atomic.kind = call.call == SPL_CALL_HPU_CAS ? AtomicKind::compare_swap : AtomicKind::fetch_add;
  atomic.local = call.local;
  atomic.compare = call.compare;
  atomic.operand = call.operand;
  atomic.before = call.before;
  atomic.her = HerId{index};
  out.list.emplace_back(atomic);
  return false;
}

bool Nic::Impl::counter_call(uint32_t index, const HandlerCall& call, Actions& out) {
  const CounterId id = offer_of(messages[executions[index].message]).counter;
  CounterState* counter = counters.find(id);
  if (counter == nullptr) {
    out.list.emplace_back(Resume{HerId{index}, uint32_t{FAIL}});
    return false;
  }
  if (call.call == SPL_CALL_CT_GET) {
    if (!is_hpu_memory(call.local_memory)) {
      refuse_call(index, uint32_t{SEGV}, out);
      return false;
    }
    out.list.emplace_back(StoreLocal{call.local, {counter->value.success, counter->value.failure}});
  } else if (call.call == SPL_CALL_CT_INC) {
    count(id, CounterValue{call.success, call.failure}, out);
  } else {
    set_counter(id, CounterValue{call.success, call.failure}, out);
  }
  out.list.emplace_back(Resume{HerId{index}, uint32_t{SUCCESS}});
  return false;
}

bool Nic::Impl::debug_call(uint32_t index, const HandlerCall& call, Actions& out) {
  if (call.options != 0) return true;
  if (call.local == nullptr) {
    refuse_call(index, uint32_t{SEGV}, out);
    return false;
  }
  const Her& her = executions[index].her;
  const std::string text(reinterpret_cast<const char*>(call.local), call.length);
  out.list.emplace_back(DebugLine{her.kind, her.hpu, text, static_cast<uint32_t>(call.operand)});
  out.list.emplace_back(Resume{HerId{index}, uint32_t{SUCCESS}});
  return false;
}

// As the host's put, with the entry's portal table entry, queue and counter. One from the device is a packet whose
// bytes are read before the handler goes on.
bool Nic::Impl::put_call(uint32_t index, const HandlerCall& call, Actions& out) {
  if ((call.options & ~put_options) != 0) return true;
  const Message& message = messages[executions[index].message];
  const bool from_device = call.call == SPL_CALL_PUT_FROM_DEVICE;
  if (from_device && call.length > config.payload_bytes) {
    out.list.emplace_back(Resume{HerId{index}, uint32_t{FAIL}});
    return false;
  }
  Put put;
  put.length = call.length;
  if (from_device) {
    if (call.length > 0 && !is_readable(call.local_memory)) {
      refuse_call(index, uint32_t{SEGV}, out);
      return false;
    }
    put.local = call.local;
  } else {
    const HostRange range = host_range(message, call.options);
    if (call.offset > range.length || call.length > range.length - call.offset) {
      refuse_call(index, uint32_t{SEGV}, out);
      return false;
    }
    put.local = range.start + call.offset;
  }
  put.target = Rank{call.target};
  const Offer offer = offer_of(message);
  put.portal = offer.portal;
  put.match_bits = call.match_bits;
  put.remote_offset = call.remote_offset;
  put.hdr_data = call.hdr_data;
  put.user_ptr = call.user_ptr;
  put.queue = offer.queue;
  put.event_send_disable = true;
  if ((call.options & PTL_LOCAL_ME_CT) != 0 && counters.find(offer.counter) != nullptr) {
    put.counter = offer.counter;
    put.ct_send = true;
  }
  if ((call.options & PTL_ME_ACK) != 0) put.ack_request = AckRequest::ack;
  if (const Status good = check_put(put); !good) {
    note_failure(good.error());
    out.list.emplace_back(Resume{HerId{index}, uint32_t{FAIL}});
    return false;
  }
  const bool waits = from_device && call.length > 0;
  start_put(put, out, waits ? HerId{index} : HerId{});
  if (!waits) out.list.emplace_back(Resume{HerId{index}, uint32_t{SUCCESS}});
  return false;
}

}  // namespace spinloom::nic
