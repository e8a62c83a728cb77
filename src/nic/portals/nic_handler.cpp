// Handlers: when they start, how they end and what their ends mean for their work (docs/handlers.md has the tables);
// and the ends of DMAs.
#include "nic/portals/nic_impl.hpp"
#include "spinloom/handler.h"

namespace spinloom::nic {

HandlerWork& Nic::Impl::work_of(Owner owner) {
  return owner.kind == OwnerKind::process_put ? initiator.process_put_work(owner.slot) : messages[owner.slot];
}

const HandlerWork& Nic::Impl::work_of(Owner owner) const {
  return owner.kind == OwnerKind::process_put ? initiator.process_put_work(owner.slot) : messages[owner.slot];
}

void Nic::Impl::enqueue(Execution& execution) {
  executions.ready(execution);
  scheduler.ready(execution.her.id, execution.her.context, execution.her.vhpu);
}

void Nic::Impl::dispatch(Actions& out) {
  while (const auto start = scheduler.next()) {
    const Her& her = executions[start->her].her;
    const Scheduler::Place place{start->hpu, her.context, her.vhpu};
    if (!skip_if_stopped(start->her, out)) {
      run(start->her, start->hpu, out);
    } else {
      return_hpu(place, out);
    }
  }
}

void Nic::Impl::run(HerId id, HpuId hpu, Actions& out) {
  Execution& execution = executions[id];
  executions.start(execution, hpu);
  Her& her = out.add<RunHandler>().her;
  her = execution.her;
  if (!her.vhpu.exists()) her.vhpu = VhpuId{hpu.value};
  constexpr Telemetry started[] = {Telemetry::header_handlers, Telemetry::payload_handlers,
                                   Telemetry::completion_handlers};
  SPL_ASSERT(static_cast<size_t>(her.kind) < std::size(started), "contexts of Portals have no such handlers");
  contexts.tally(her.context, started[static_cast<size_t>(her.kind)]);
}

// Gives back the HPU of a handler that has ended or never started; a handler of the same virtual HPU may get it.
void Nic::Impl::return_hpu(const Scheduler::Place& place, Actions& out) {
  while (const auto next = scheduler.ended(place)) {
    if (!skip_if_stopped(*next, out)) return run(*next, place.hpu, out);
  }
}

// Drops the packet of stopped work instead of running its handler. Looks at each execution once.
bool Nic::Impl::skip_if_stopped(HerId id, Actions& out) {
  const Execution& execution = executions[id];
  const Owner owner = execution.owner;
  SPL_ASSERT(execution.stage == Stage::ready, "HER ", id);
  if (!work_of(owner).stopped) return false;
  SPL_ASSERT(execution.her.kind == HandlerKind::payload, "stopped work runs no completion handler");
  if (owner.kind == OwnerKind::process_put) {
    initiator.cut_message(owner.slot, execution.packet_offset);
    drop_execution(id);
    return true;
  }
  messages[owner.slot].dropped_bytes += execution.buffer_bytes;
  drop_execution(id);
  advance(owner.slot, out);
  return true;
}

// Removes a packet that no handler will see.
void Nic::Impl::drop_execution(HerId id) {
  Execution& execution = executions[id];
  HandlerWork& work = work_of(execution.owner);
  SPL_ASSERT(work.hers_open > 0, "HER ", id);
  --work.hers_open;
  executions.drop(execution);
  release(execution);
}

// The packet slot is free when its handler has ended and its DMAs are done.
void Nic::Impl::release(const Execution& execution) {
  const OutboundSlotId outbound{execution.outbound};
  if (executions.free_if_done(execution) && outbound.exists()) initiator.packet_filled(outbound);
}

void Nic::Impl::handler_done(HerId id, HandlerEnd end, uint32_t code, uint64_t cycles, Actions& out) {
  Execution& execution = executions[id];
  SPL_ASSERT(execution.stage == Stage::running, "HER ", id, " ends but does not run");
  contexts.tally(execution.her.context, Telemetry::handler_cycles, cycles);
  if (end != HandlerEnd::returned) contexts.tally(execution.her.context, Telemetry::handler_faults);
  const Owner owner = execution.owner;
  HandlerWork& work = work_of(owner);
  if (owner.kind == OwnerKind::incoming) {
    incoming_done(messages[owner.slot], execution, end, code, out);
  } else if (end != HandlerEnd::returned || code != SUCCESS) {
    work.fail(end, code);
    initiator.cut_message(owner.slot, execution.packet_offset);
  }
  executions.end(execution);
  // This may drop other packets of this work, which must not complete before this execution counts.
  return_hpu({execution.her.hpu, execution.her.context, execution.her.vhpu}, out);
  SPL_ASSERT(work.hers_open > 0, "HER ", id);
  --work.hers_open;
  release(execution);
  if (owner.kind == OwnerKind::incoming) advance(owner.slot, out);
}

// Acts on the decision of a handler of an incoming message.
void Nic::Impl::incoming_done(Message& message, const Execution& execution, HandlerEnd end, uint32_t code,
                              Actions& out) {
  const bool succeeded = end == HandlerEnd::returned && code == SUCCESS;
  if (execution.her.kind == HandlerKind::header) {
    header_done(execution.owner.slot, end, code, out);
  } else if (execution.her.kind == HandlerKind::payload) {
    const bool drops = end == HandlerEnd::returned && code == DROP;
    if (drops || end != HandlerEnd::returned) message.dropped_bytes += execution.buffer_bytes;
    if (!drops && !succeeded) message.fail(end, code);
  } else if (end == HandlerEnd::returned && code == SUCCESS_PENDING) {
    message.pending = true;
  } else if (!succeeded) {
    message.fail(end, code);
  }
  // A message that failed completes its entry in spite of PENDING: the host must learn of the failure.
  if (message.failure != Fail::ok) message.pending = false;
}

void Nic::Impl::fail_dma(DmaId id, Fail failure) {
  const Owner owner = dmas.owner(id);
  SPL_ASSERT(failure != Fail::ok && owner.kind != OwnerKind::whole_put, "DMA ", id, ": ", name_of(failure));
  if (owner.kind == OwnerKind::reply) return initiator.fail_reply(owner.slot, failure);
  work_of(owner).record(failure);
  if (owner.kind == OwnerKind::incoming) messages[owner.slot].nothing_landed = true;
}

void Nic::Impl::dma_done(DmaId id, Actions& out) {
  const auto ended = dmas.end(id);
  if (!ended) return;
  const Owner owner = ended->owner;
  if (owner.kind == OwnerKind::whole_put) return delivered(owner.slot, out);
  if (owner.kind == OwnerKind::reply) return initiator.reply_landed(owner.slot, out);
  buffer.release(ended->buffer_bytes);
  if (ended->her.exists()) {
    Execution& execution = executions[ended->her];
    Executions::dma_done(execution);
    if (ended->resumes) out.add<Resume>(ended->her, uint32_t{0});
    release(execution);
  }
  HandlerWork& work = work_of(owner);
  dmas.retire(work.dmas, *ended);
  while (const auto report = dmas.next_report(work.dmas)) {
    Event event = dma_event(owner);
    event.manipulated_bytes = report->length;
    event.remote_offset = report->offset;
    event.start = report->start;
    queues.post(handler_objects(owner).queue, event, out);
  }
  if (owner.kind == OwnerKind::incoming && work.dmas.open == 0) advance(owner.slot, out);
}

// The event of a handler's DMA, without the fields of the DMA itself.
Event Nic::Impl::dma_event(Owner owner) const {
  if (owner.kind == OwnerKind::incoming) return event_of(messages[owner.slot], EventKind::dma);
  Event event;
  event.kind = EventKind::dma;
  event.fail = initiator.process_put_work(owner.slot).failure;
  event.user_ptr = initiator.user_ptr_of(owner.slot);
  return event;
}

}  // namespace spinloom::nic
