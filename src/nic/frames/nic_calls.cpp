// The calls of a running handler, and the ends of its DMAs (docs/ethernet.md has the table).
#include "nic/frames/nic_impl.hpp"
#include "spinloom/handler.h"

namespace spinloom::frames {

bool Nic::on_handler_call(HerId her, const HandlerCall& call, Actions& out) {
  Execution& caller = impl_->executions[her];
  SPL_ASSERT(caller.stage == Stage::running, "HER ", her, " calls but does not run");
  return impl_->answer_call(caller, call, out) == CallResult::stop_handler;
}

void Nic::on_dma_done(DmaId dma, Actions& out) {
  impl_->dma_done(dma, out);
  impl_->dispatch(out);
}

void Nic::on_dma_read(DmaId dma, Actions& out) {
  if (const auto her = impl_->dmas.source_read(dma)) out.add<Resume>(*her, uint32_t{SUCCESS});
}

CallResult Nic::Impl::answer_call(Execution& caller, const HandlerCall& call, Actions& out) {
  DmaQueue& queue = packets[caller.owner.slot].dmas;
  const Context& context = contexts.find(caller.her.context)->options.handlers;
  const HostRange host{reinterpret_cast<uint8_t*>(context.handler_host_start), context.handler_host_length, {}};
  switch (call.call) {
    case SPL_CALL_DMA_TO_HOST_NB:
    case SPL_CALL_DMA_TO_HOST_B:
    case SPL_CALL_DMA_FROM_HOST_NB:
    case SPL_CALL_DMA_FROM_HOST_B: {
      HandlerCall quiet = call;  // a context of an Ethernet NIC has no event queue
      quiet.options |= PTL_DMA_NO_EVENT;
      return requests.dma(caller, quiet, queue, host, true, out);
    }
    case SPL_CALL_DMA_CAS_NB:
    case SPL_CALL_DMA_CAS_B:
    case SPL_CALL_DMA_FADD_NB:
    case SPL_CALL_DMA_FADD_B: return requests.dma_atomic(caller, call, queue, host, out);
    case SPL_CALL_DMA_TEST:
    case SPL_CALL_DMA_WAIT: return requests.dma_wait(caller, call, out);
    case SPL_CALL_HPU_CAS:
    case SPL_CALL_HPU_FADD: return requests.local_atomic(caller, call, out);
    case SPL_CALL_SEND_FRAME: return send_call(caller, call, out);
    case SPL_CALL_MAIL: return mail_call(caller, call, out);
    case SPL_CALL_TELEMETRY: return telemetry_call(caller, call, out);
    case SPL_CALL_DEBUG: return requests.debug(caller, call, out);
    case SPL_CALL_YIELD: out.add<Resume>(caller.her.id, uint32_t{SUCCESS}); return CallResult::performed;
    default: return CallResult::stop_handler;
  }
}

// Sends a frame from packet memory, state or constants. Its bytes are read later, so a frame on the stack is refused.
CallResult Nic::Impl::send_call(Execution& caller, const HandlerCall& call, Actions& out) {
  if (call.options != 0) return CallResult::stop_handler;
  const HerId her = caller.her.id;
  const bool readable = call.local_memory == LocalMemory::packet || call.local_memory == LocalMemory::state ||
                        call.local_memory == LocalMemory::constants;
  if (!readable || call.length < 14 || call.length > limits.frame_bytes_max) {
    out.add<Resume>(her, DmaId::none_value);
    return CallResult::refused;
  }
  const auto [dma, handle] = dmas.issue(packets[caller.owner.slot].dmas, caller.owner, her, false);
  Executions::dma_issued(caller);
  PayloadRef bytes;
  bytes.space = PayloadRef::Space::local;
  bytes.bytes = call.local;
  bytes.length = call.length;
  egress.add_handler({dma, 0, bytes});
  out.add<Resume>(her, handle);
  transmit(out);
  return CallResult::performed;
}

CallResult Nic::Impl::mail_call(const Execution& caller, const HandlerCall& call, Actions& out) {
  if (call.options != 0) return CallResult::stop_handler;
  const ContextId target{call.context};
  InstalledContext* const target_context = contexts.find(target);
  const HerId her = caller.her.id;
  if (target_context == nullptr || !target_context->active || !target_context->options.handlers.mail_entry ||
      target_context->mails >= limits.mails) {
    tally(Count::mails_refused);
    out.add<Resume>(her, uint32_t{FAIL});
    return CallResult::refused;
  }
  tally(Count::mails);
  const ContextId sender = caller.her.context;
  const auto [index, packet] = packets.make();
  packet.context = target;
  packet.sender = sender;
  packet.identifier = call.handle;
  packet.argument = call.operand;
  packet.uses = 1;
  ++target_context->packets;
  ++target_context->mails;
  out.add<Resume>(her, uint32_t{SUCCESS});
  ready(HandlerKind::mail, index);
  dispatch(out);
  return CallResult::performed;
}

CallResult Nic::Impl::telemetry_call(const Execution& caller, const HandlerCall& call, Actions& out) const {
  if (call.options != 0) return CallResult::stop_handler;
  uint64_t value = 0;
  const uint64_t which = call.operand;
  if (which < count_kinds) {
    value = counts[which];
  } else if (which >= SPL_TELEMETRY_CONTEXT && which - SPL_TELEMETRY_CONTEXT < telemetry_counts) {
    value = contexts.find(caller.her.context)->telemetry[which - SPL_TELEMETRY_CONTEXT];
  } else if (which >= SPL_TELEMETRY_FREE_SLOTS && which - SPL_TELEMETRY_FREE_SLOTS < packet_memory.classes()) {
    value = packet_memory.free(static_cast<uint32_t>(which - SPL_TELEMETRY_FREE_SLOTS));
  } else {
    return CallResult::stop_handler;
  }
  out.add<Resume>(caller.her.id, static_cast<uint32_t>(value));
  return CallResult::performed;
}

void Nic::Impl::dma_done(DmaId id, Actions& out) {
  const auto ended = dmas.end(id);
  if (!ended) return;
  const uint32_t index = ended->owner.slot;
  Packet& packet = packets[index];
  dmas.retire(packet.dmas, *ended);
  if (!ended->her.exists()) {  // a frame on its way to host memory: its header's write is the last
    if (packet.dmas.open > 0) return;
    tally(Count::to_memory);
    return end_use(index);
  }
  Execution& execution = executions[ended->her];
  Executions::dma_done(execution);
  if (ended->resumes) out.add<Resume>(ended->her, uint32_t{0});
  release(execution, out);
}

}  // namespace spinloom::frames
