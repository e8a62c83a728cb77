// The scheduler: which HER runs on which handler processing unit.
//
// Default: HERs in the order they became ready, each on the idle HPU with the lowest index that its context's mask
// allows; one that has to wait for an HPU of its mask lets others pass. Blocked round-robin
// (SC'19 datatypes paper, section 3.2.1): the packets of a sequence belong to one virtual HPU; virtual HPUs are
// what is scheduled; one keeps its HPU while it has ready packets. Completion handlers have no packet and run on
// any idle HPU under both policies.
#include "nic/nic_impl.hpp"

namespace spinloom::nic {

void Nic::Impl::enqueue(uint32_t index) {
  Execution& execution = executions[index];
  SPL_ASSERT(execution.stage < Stage::running, "HER ", index, " is past that");
  execution.stage = Stage::ready;
  if (!execution.her.vhpu.exists()) {
    make_runnable(Runnable{index, execution.her.context, no_slot});
    return;
  }
  ContextState& context = *contexts.find(execution.her.context);
  SPL_ASSERT(execution.her.vhpu.value < context.vhpus.size(), execution.her.vhpu, " of ", context.vhpus.size());
  VirtualHpu& vhpu = context.vhpus[execution.her.vhpu.value];
  (vhpu.ready_last == no_slot ? vhpu.ready_first : executions[vhpu.ready_last].next) = index;
  vhpu.ready_last = index;
  if (vhpu.queued || vhpu.hpu != no_slot) return;
  vhpu.queued = true;
  make_runnable(Runnable{no_slot, execution.her.context, execution.her.vhpu.value});
}

void Nic::Impl::make_runnable(Runnable one) {
  ContextState& context = *contexts.find(one.context);
  one.sequence = next_runnable_sequence++;
  (context.context.hpus ? context.runnable : runnable).push(one);
}

// Where the oldest runnable is for which an HPU is idle.
Fifo<Nic::Impl::Runnable>* Nic::Impl::next_to_run() {
  if (!idle.any()) return nullptr;
  Fifo<Runnable>* oldest = runnable.empty() ? nullptr : &runnable;
  for (const ContextId id : masked_contexts) {
    ContextState& context = *contexts.find(id);
    if (context.runnable.empty() || !idle.any_of(*context.context.hpus)) continue;
    if (oldest == nullptr || context.runnable.front().sequence < oldest->front().sequence) oldest = &context.runnable;
  }
  return oldest;
}

void Nic::Impl::dispatch(Actions& out) {
  while (Fifo<Runnable>* queue = next_to_run()) {
    const Runnable next = queue->pop();
    ContextState& context = *contexts.find(next.context);
    const HpuMask* mask = context.context.hpus ? &*context.context.hpus : nullptr;
    if (next.execution != no_slot) {
      if (!skip_if_stopped(next.execution, out)) run(next.execution, idle.take_lowest(mask), out);
      continue;
    }
    VirtualHpu& vhpu = context.vhpus[next.vhpu];
    SPL_ASSERT(vhpu.queued && vhpu.hpu == no_slot, "virtual HPU ", next.vhpu, " on HPU ", vhpu.hpu);
    vhpu.queued = false;
    const uint32_t execution = take_ready(vhpu, out);
    if (execution == no_slot) continue;
    vhpu.hpu = idle.take_lowest(mask);
    run(execution, vhpu.hpu, out);
  }
}

void Nic::Impl::run(uint32_t index, uint32_t hpu, Actions& out) {
  Execution& execution = executions[index];
  SPL_ASSERT(execution.stage == Stage::ready && hers_waiting > 0 && hpu < config.hpus, "HER ", index, " on HPU ", hpu);
  execution.stage = Stage::running;
  --hers_waiting;
  execution.her.hpu = HpuId{hpu};
  Her& her = out.add<RunHandler>().her;
  her = execution.her;
  if (!her.vhpu.exists()) her.vhpu = VhpuId{hpu};
  constexpr Telemetry started[] = {Telemetry::header_handlers, Telemetry::payload_handlers,
                                   Telemetry::completion_handlers};
  tally(her.context, started[static_cast<size_t>(her.kind)]);
}

// The HPU of a handler that has ended: its virtual HPU goes on with it, or yields it.
void Nic::Impl::free_hpu(const Execution& execution, Actions& out) {
  const uint32_t hpu = execution.her.hpu.value;
  if (execution.her.vhpu.exists()) {
    VirtualHpu& vhpu = contexts.find(execution.her.context)->vhpus[execution.her.vhpu.value];
    SPL_ASSERT(vhpu.hpu == hpu, "virtual HPU ", execution.her.vhpu, " runs on ", vhpu.hpu, ", not on ", hpu);
    const uint32_t next = take_ready(vhpu, out);
    if (next != no_slot) return run(next, hpu, out);
    vhpu.hpu = no_slot;
  }
  idle.add(hpu);
}

// The oldest ready HER of a virtual HPU that may still run.
uint32_t Nic::Impl::take_ready(VirtualHpu& vhpu, Actions& out) {
  while (vhpu.ready_first != no_slot) {
    const uint32_t index = vhpu.ready_first;
    vhpu.ready_first = executions[index].next;
    if (vhpu.ready_first == no_slot) vhpu.ready_last = no_slot;
    executions[index].next = no_slot;
    if (!skip_if_stopped(index, out)) return index;
  }
  return no_slot;
}

// Drops the packet of a stopped message instead of running its handler. Each HER is looked at once.
bool Nic::Impl::skip_if_stopped(uint32_t index, Actions& out) {
  Execution& execution = executions[index];
  const uint32_t slot = execution.message;
  Message& message = messages[slot];
  SPL_ASSERT(execution.stage == Stage::ready, "HER ", index);
  if (!message.stopped) return false;
  SPL_ASSERT(execution.her.kind == HandlerKind::payload, "a stopped message runs no completion handler");
  message.dropped_bytes += execution.buffer_bytes;
  if (message.outgoing != no_slot) cut(index);
  take_out(index);
  advance(slot, out);
  return true;
}

// The packet slot is free when its handler has ended and its DMAs are done.
void Nic::Impl::release_execution(uint32_t index) {
  const Execution& execution = executions[index];
  if (execution.stage != Stage::ended || execution.dmas_open > 0) return;
  buffer_release(execution.buffer_bytes);
  if (execution.outbound != no_slot) packet_filled(execution.outbound);
  executions.give_back(index);
}

}  // namespace spinloom::nic
