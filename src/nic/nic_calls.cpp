// What a running handler asks of its NIC and host (docs/handlers.md has the table); what it asks of other NICs is in
// nic_requests. A function that returns true stops the handler.
#include <algorithm>

#include "nic/nic_impl.hpp"
#include "spinloom/handler.h"

namespace spinloom::nic {
namespace {

constexpr uint32_t dma_options = PTL_HANDLER_HOST_MEM | PTL_DMA_NO_EVENT;

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
    case SPL_CALL_GET_FROM_DEVICE:
    case SPL_CALL_GET_FROM_HOST: return get_call(her.value, call, out);
    case SPL_CALL_ATOMIC_FROM_DEVICE:
    case SPL_CALL_ATOMIC_FROM_HOST:
    case SPL_CALL_FETCH_ATOMIC_FROM_DEVICE: return atomic_call(her.value, call, out);
    case SPL_CALL_DEBUG: return debug_call(her.value, call, out);
    case SPL_CALL_YIELD:  // a hint: this scheduler lets a handler run to its end
      out.add<Resume>(her, uint32_t{SUCCESS});
      return false;
    default: return true;
  }
}

Nic::Impl::HostRange Nic::Impl::host_range(const Message& message, uint32_t options) const {
  if ((options & PTL_HANDLER_HOST_MEM) != 0) {
    const ContextState& state = *contexts.find(message.context);
    const IovecView list{state.context.handler_host_iovec, state.iovec_ends};
    if (list.exists()) return {nullptr, list.length(), list};
    return {reinterpret_cast<uint8_t*>(state.context.handler_host_start), state.context.handler_host_length};
  }
  if (message.outgoing != no_slot) return offer_of(message).memory;
  const ListedEntry& listed = entries[message.entry];
  return {listed.entry.start, listed.entry.length, list_of(listed)};
}

// The bytes of a range in memory, one piece an element of a list. The caller knows that they are inside.
std::vector<IovecElement> Nic::Impl::pieces_of(const HostRange& range, uint64_t offset, uint64_t length) {
  if (!range.list.exists()) return {{range.start + offset, length}};
  return nic::pieces_of(range.list, offset, length);
}

// Where the bytes begin; nothing when they are not inside, or in several elements of a list.
std::optional<uint8_t*> Nic::Impl::contiguous(const HostRange& range, uint64_t offset, uint64_t length) {
  if (offset > range.length || length > range.length - offset) return std::nullopt;
  if (length == 0) return range.start;
  const std::vector<IovecElement> pieces = pieces_of(range, offset, length);
  return pieces.size() == 1 ? std::optional(pieces.front().base) : std::nullopt;
}

// The call is not performed, its message fails, the handler goes on.
void Nic::Impl::refuse_call(uint32_t index, uint32_t answer, Actions& out) {
  Message& message = messages[executions[index].message];
  record_failure(message, Fail::segv);
  if (message.outgoing != no_slot) cut(index);
  out.add<Resume>(HerId{index}, answer);
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
  std::vector<IovecElement> pieces;
  if (range.list.exists()) pieces = pieces_of(range, call.offset, call.length);
  uint8_t* host = !pieces.empty() ? pieces.front().base : call.length > 0 ? range.start + call.offset : range.start;
  if ((call.options & PTL_DMA_NO_EVENT) == 0) {
    dma.event = true;
    dma.offset = call.offset;
    dma.length = call.length;
    dma.start = reinterpret_cast<uint64_t>(host);
  }
  if (pieces.size() > 1) {
    issue_pieces(slot, call.local, pieces, to_host, out);
  } else if (to_host) {
    DmaWrite& write = out.add<DmaWrite>();
    write.dma = DmaId{slot};
    write.host = host;
    write.source.space = PayloadRef::Space::local;
    write.source.bytes = call.local;
    write.source.length = call.length;
    write.her = HerId{index};
    write.blocking = blocking;
  } else {
    out.add<DmaRead>(DmaId{slot}, host, call.local, call.length, HerId{index});
  }
  if (!blocking) out.add<Resume>(HerId{index}, handle_of(slot));
  return false;
}

bool Nic::Impl::dma_atomic(uint32_t index, const HandlerCall& call, Actions& out) {
  if ((call.options & ~dma_options) != 0) return true;
  const bool blocking = call.call == SPL_CALL_DMA_CAS_B || call.call == SPL_CALL_DMA_FADD_B;
  const bool swaps = call.call == SPL_CALL_DMA_CAS_NB || call.call == SPL_CALL_DMA_CAS_B;
  const bool width_exists = call.width == 1 || call.width == 2 || call.width == 4 || call.width == 8;
  if (!width_exists || (swaps && call.width != 8)) return true;
  const HostRange range = host_range(messages[executions[index].message], call.options);
  const std::optional<uint8_t*> host = contiguous(range, call.offset, call.width);
  const bool aligned = host && (reinterpret_cast<uint64_t>(*host) & (call.width - 1)) == 0;
  if (!aligned || !is_hpu_memory(call.local_memory) || !outlives(call.local_memory, blocking)) {
    refuse_call(index, blocking ? uint32_t{SEGV} : DmaId::none_value, out);
    return false;
  }
  const uint32_t slot = issue_dma(executions[index].message, index);
  dmas[slot].blocks = blocking;
  DmaAtomic atomic;
  atomic.dma = DmaId{slot};
  atomic.kind = swaps ? AtomicKind::compare_swap : AtomicKind::fetch_add;
  atomic.host = *host;
  atomic.width = call.width;
  atomic.compare = call.compare;
  atomic.operand = call.operand;
  atomic.before = call.local;
  atomic.her = HerId{index};
  out.list.emplace_back(atomic);
  if (!blocking) out.add<Resume>(HerId{index}, handle_of(slot));
  return false;
}

bool Nic::Impl::dma_wait(uint32_t index, const HandlerCall& call, Actions& out) {
  const uint32_t slot = dma_of(call.handle, index);
  const bool open = slot != no_slot && !dmas[slot].done;
  if (call.call == SPL_CALL_DMA_TEST) {
    out.add<Resume>(HerId{index}, open ? 0u : 1u);
  } else if (open) {
    dmas[slot].waited = true;  // answered by its end
  } else {
    out.add<Resume>(HerId{index}, uint32_t{SUCCESS});
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
    out.add<Resume>(HerId{index}, uint32_t{FAIL});
    return false;
  }
  if (call.call == SPL_CALL_CT_GET) {
    if (!is_hpu_memory(call.local_memory)) {
      refuse_call(index, uint32_t{SEGV}, out);
      return false;
    }
    out.add<StoreLocal>(call.local, std::array{counter->value.success, counter->value.failure});
  } else if (call.call == SPL_CALL_CT_INC) {
    count(id, CounterValue{call.success, call.failure}, out);
  } else {
    set_counter(id, CounterValue{call.success, call.failure}, out);
  }
  out.add<Resume>(HerId{index}, uint32_t{SUCCESS});
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
  out.add<DebugLine>(her.kind, her.hpu, text, static_cast<uint32_t>(call.operand));
  out.add<Resume>(HerId{index}, uint32_t{SUCCESS});
  return false;
}

}  // namespace spinloom::nic
