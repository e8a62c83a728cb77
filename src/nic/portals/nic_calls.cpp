// The calls of a running handler to its NIC and host (docs/handlers.md has the table); calls to other NICs are in
// nic_requests.
#include <array>

#include "nic/portals/entry_memory.hpp"
#include "nic/portals/nic_impl.hpp"
#include "spinloom/handler.h"

namespace spinloom::nic {

// True if the handler must be stopped.
bool Nic::Impl::handler_call(HerId her, const HandlerCall& call, Actions& out) {
  Execution& caller = executions[her];
  SPL_ASSERT(caller.stage == Stage::running, "HER ", her, " calls but does not run");
  const CallResult result = answer_call(caller, call, out);
  if (result == CallResult::refused) fail_call(caller);
  return result == CallResult::stop_handler;
}

CallResult Nic::Impl::answer_call(Execution& caller, const HandlerCall& call, Actions& out) {
  const HerId her = caller.her.id;
  switch (call.call) {
    case SPL_CALL_DMA_TO_HOST_NB:
    case SPL_CALL_DMA_TO_HOST_B:
    case SPL_CALL_DMA_FROM_HOST_NB:
    case SPL_CALL_DMA_FROM_HOST_B: {
      const Owner owner = caller.owner;
      const bool fills = owner.kind == OwnerKind::process_put;
      const bool writes = call.call == SPL_CALL_DMA_TO_HOST_NB || call.call == SPL_CALL_DMA_TO_HOST_B;
      if (is_memory_missing(owner, call, call.length, writes ? Access::write : Access::read))
        return refuse_dma(her, out);
      return requests.dma(caller, call, work_of(owner).dmas, host_range(owner, call.options), fills, out);
    }
    case SPL_CALL_DMA_CAS_NB:
    case SPL_CALL_DMA_CAS_B:
    case SPL_CALL_DMA_FADD_NB:
    case SPL_CALL_DMA_FADD_B: {
      const Owner owner = caller.owner;
      if (is_memory_missing(owner, call, call.width, Access::write)) return refuse_dma(her, out);
      return requests.dma_atomic(caller, call, work_of(owner).dmas, host_range(owner, call.options), out);
    }
    case SPL_CALL_DMA_TEST:
    case SPL_CALL_DMA_WAIT: return requests.dma_wait(caller, call, out);
    case SPL_CALL_HPU_CAS:
    case SPL_CALL_HPU_FADD: return requests.local_atomic(caller, call, out);
    case SPL_CALL_CT_INC:
    case SPL_CALL_CT_GET:
    case SPL_CALL_CT_SET: return counter_call(her, call, out);
    case SPL_CALL_PUT_FROM_DEVICE:
    case SPL_CALL_PUT_FROM_HOST: return put_call(her, call, out);
    case SPL_CALL_PROCESS_PUT: return process_put_call(her, call, out);
    case SPL_CALL_GET_FROM_DEVICE:
    case SPL_CALL_GET_FROM_HOST: return get_call(her, call, out);
    case SPL_CALL_ATOMIC_FROM_DEVICE:
    case SPL_CALL_ATOMIC_FROM_HOST:
    case SPL_CALL_FETCH_ATOMIC_FROM_DEVICE: return atomic_call(her, call, out);
    case SPL_CALL_DEBUG: return requests.debug(caller, call, out);
    case SPL_CALL_YIELD:  // a hint: this scheduler lets a handler run to its end
      out.add<Resume>(her, uint32_t{SUCCESS});
      return CallResult::performed;
    default: return CallResult::stop_handler;
  }
}

// True if a call names memory of its entry that is not there.
bool Nic::Impl::is_memory_missing(Owner owner, const HandlerCall& call, uint64_t length, Access access) const {
  if (owner.kind != OwnerKind::incoming || (call.options & PTL_HANDLER_HOST_MEM) != 0) return false;
  const ListedEntry& listed = portals.entry(messages[owner.slot].entry);
  return listed.entry.sparse && entry_range(messages[owner.slot]).holds(call.offset, length) &&
         !is_accessible(listed, call.offset, length, access);
}

CallResult Nic::Impl::refuse_dma(HerId her, Actions& out) {
  out.add<Resume>(her, uint32_t{SEGV});
  return CallResult::refused;
}

// Fails the message of a call that was not performed; the handler goes on.
void Nic::Impl::fail_call(const Execution& caller) {
  work_of(caller.owner).record(Fail::segv);
  if (caller.owner.kind == OwnerKind::process_put) initiator.cut_message(caller.owner.slot, caller.packet_offset);
}

HandlerObjects Nic::Impl::handler_objects(Owner owner) const {
  if (owner.kind == OwnerKind::process_put) return initiator.handler_objects(owner.slot);
  const Message& message = messages[owner.slot];
  const CounterId counter = portals.entry(message.entry).entry.counter;
  return {message.portal, portals.find(message.portal)->queue, counter, entry_range(message)};
}

HostRange Nic::Impl::entry_range(const Message& message) const {
  const ListedEntry& listed = portals.entry(message.entry);
  if (listed.entry.iovec.empty()) return {listed.entry.start, listed.entry.length, {}};
  return {nullptr, listed.entry.length, list_of(listed)};
}

// The memory that a handler's call names: handler host memory of its context, or the memory that its work offers.
HostRange Nic::Impl::host_range(Owner owner, uint32_t options) const {
  if ((options & PTL_HANDLER_HOST_MEM) == 0) {
    return owner.kind == OwnerKind::process_put ? initiator.handler_objects(owner.slot).memory
                                                : entry_range(messages[owner.slot]);
  }
  const ContextId id = work_of(owner).context;
  const IovecView list = contexts.host_list(id);
  if (list.exists()) return {nullptr, list.length(), list};
  const Context& context = *contexts.find(id);
  return {reinterpret_cast<uint8_t*>(context.handler_host_start), context.handler_host_length, {}};
}

CallResult Nic::Impl::counter_call(HerId her, const HandlerCall& call, Actions& out) {
  const CounterId id = handler_objects(executions[her].owner).counter;
  uint32_t answer = SUCCESS;
  if (!triggers.exists(id)) {
    answer = FAIL;
  } else if (call.call == SPL_CALL_CT_GET) {
    if (!is_hpu_memory(call.local_memory)) {
      out.add<Resume>(her, uint32_t{SEGV});
      return CallResult::refused;
    }
    const CounterValue value = triggers.value(id);
    out.add<StoreLocal>(call.local, std::array{value.success, value.failure});
  } else if (call.call == SPL_CALL_CT_INC) {
    triggers.count(id, CounterValue{call.success, call.failure}, out);
  } else {
    triggers.set(id, CounterValue{call.success, call.failure}, out);
  }
  out.add<Resume>(her, answer);
  return CallResult::performed;
}

}  // namespace spinloom::nic
