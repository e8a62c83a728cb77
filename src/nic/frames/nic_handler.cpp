// Handlers: when they start, and what their ends mean for their frames.
#include "nic/frames/nic_impl.hpp"
#include "spinloom/handler.h"

namespace spinloom::frames {

void Nic::on_handler_done(HerId her, HandlerEnd end, uint32_t code, Actions& out, uint64_t cycles) {
  impl_->handler_done(her, end, code, cycles, out);
  impl_->dispatch(out);
}

// The packet's `uses` count this handler already.
void Nic::Impl::ready(HandlerKind kind, uint32_t index) {
  const Packet& packet = packets[index];
  Execution& execution = executions.open({0, index}, kind, packet.context);
  Her& her = execution.her;
  her.payload = packet.bytes;
  her.message_length = packet.bytes.length;
  her.match_bits = packet.identifier;
  her.hdr_data = kind == HandlerKind::mail ? packet.argument : packet.context.value;
  her.writes_packet = true;
  her.message = packet.identifier;
  her.rule_set = kind == HandlerKind::mail ? packet.sender.value : packet.context.value;
  her.flags = (packet.first ? SPL_FRAME_FIRST : 0) | (packet.last ? SPL_FRAME_LAST : 0) |
              (packet.by_host ? SPL_FRAME_BY_HOST : 0);
  executions.ready(execution);
  scheduler.ready(her.id, packet.context, {});
}

void Nic::Impl::dispatch(Actions& out) {
  while (const auto start = scheduler.next()) {
    Execution& execution = executions[start->her];
    executions.start(execution, start->hpu);
    Her& her = out.add<RunHandler>().her;
    her = execution.her;
    her.vhpu = VhpuId{start->hpu.value};
    constexpr Telemetry started[handler_kinds] = {Telemetry::header_handlers, Telemetry::payload_handlers,
                                                  Telemetry::completion_handlers, Telemetry::header_handlers,
                                                  Telemetry::payload_handlers};
    tally(her.context, started[static_cast<size_t>(her.kind)]);
  }
}

void Nic::Impl::handler_done(HerId id, HandlerEnd end, uint32_t code, uint64_t cycles, Actions& out) {
  Execution& execution = executions[id];
  SPL_ASSERT(execution.stage == Stage::running, "HER ", id, " ends but does not run");
  const ContextId context = execution.her.context;
  tally(context, Telemetry::handler_cycles, cycles);
  scheduler.charge(context, cycles);
  if (end != HandlerEnd::returned) {
    tally(Count::handler_faults);
    tally(context, Telemetry::handler_faults);
  }
  apply_outcome(execution, end, code, out);
  executions.end(execution);
  const auto next = scheduler.ended({execution.her.hpu, context, {}});
  SPL_ASSERT(!next, "frames have no virtual HPUs");
  release(execution, out);
}

// Applies the end of a handler to its frame and its message.
void Nic::Impl::apply_outcome(const Execution& execution, HandlerEnd end, uint32_t code, Actions& out) {
  const Packet& packet = packets[execution.owner.slot];
  const bool returned = end == HandlerEnd::returned;
  const HandlerKind kind = execution.her.kind;
  if (kind == HandlerKind::initialise) {
    const bool succeeded = returned && code == SUCCESS;
    contexts.find(packet.context)->initialising = false;
    if (!succeeded) tally(Count::handler_failed);
    out.add<Initialised>(packet.context, succeeded);
    return;
  }
  const bool good = returned && (code == SUCCESS || code == DROP || code == PROCEED || code == PROCESS_DATA);
  if (!good && returned) tally(Count::handler_failed);
  if (kind == HandlerKind::header) {
    Message& message = messages[packet.message];
    message.verdict = !good || code == DROP ? Verdict::drop : code == PROCEED ? Verdict::to_host : Verdict::process;
  } else if (kind == HandlerKind::payload && !packet.by_host) {
    if (good && code == PROCEED) {
      tally(Count::handler_to_host);
      out.add<ToHost>(packet.bytes, true);
    } else {
      tally(good && code != DROP ? Count::frames_done : Count::handler_dropped);
    }
  }
}

// A handler counts as running until its DMAs and sends are done, too.
void Nic::Impl::release(const Execution& execution, Actions& out) {
  const uint32_t index = execution.owner.slot;
  const HandlerKind kind = execution.her.kind;
  if (executions.free_if_done(execution)) handler_finished(index, kind, out);
}

void Nic::Impl::handler_finished(uint32_t index, HandlerKind kind, Actions& out) {
  if (kind == HandlerKind::mail) --contexts.find(packets[index].context)->mails;
  const uint32_t slot = packets[index].message;
  end_use(index);
  if (slot == no_slot) return;
  Message& message = messages[slot];
  SPL_ASSERT(message.running > 0, "message ", message.identifier);
  --message.running;
  if (kind == HandlerKind::header) message.phase = Phase::payload;
  if (kind == HandlerKind::completion) return end_message(slot, out);
  advance(slot, out);
}

// One use of the packet is over.
void Nic::Impl::end_use(uint32_t index) {
  Packet& packet = packets[index];
  SPL_ASSERT(packet.uses > 0, "packet ", index);
  if (--packet.uses > 0) return;
  if (packet.slot) packet_memory.give_back(*packet.slot);
  InstalledContext& installed = *contexts.find(packet.context);
  SPL_ASSERT(installed.packets > 0, "context ", packet.context);
  --installed.packets;
  packets.give_back(index);
}

}  // namespace spinloom::frames
