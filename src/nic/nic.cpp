#include "nic/nic.hpp"

#include <algorithm>
#include <utility>

#include "nic/nic_impl.hpp"

namespace spinloom::nic {

Status check(const NicLimits& limits) {
  if (limits.payload_bytes == 0 || limits.payload_bytes > limits::payload_bytes_max) {
    return fail(Code::invalid, "NIC limits: payload_bytes is ", limits.payload_bytes, ", it must be 1 to ",
                limits::payload_bytes_max);
  }
  if (limits.hpus == 0 || limits.hpus > limits::hpu_count_max) {
    return fail(Code::invalid, "NIC limits: hpus is ", limits.hpus, ", it must be 1 to ", limits::hpu_count_max);
  }
  if (limits.atomic_bytes == 0 || limits.fetch_atomic_bytes == 0) {
    return fail(Code::invalid, "NIC limits: atomic_bytes or fetch_atomic_bytes is 0, an element has at least 1");
  }
  if (limits.iovec_entries == 0) {
    return fail(Code::invalid, "NIC limits: iovec_entries is 0, a scatter list needs at least 1");
  }
  if (limits.handler_messages == 0) {
    return fail(Code::invalid, "NIC limits: handler_messages is 0, a context takes at least 1 message");
  }
  if (limits.outbound_packets == 0 || limits.outbound_packets > limits::outbound_packets_max) {
    return fail(Code::invalid, "NIC limits: outbound_packets is ", limits.outbound_packets, ", it must be 1 to ",
                limits::outbound_packets_max);
  }
  if (limits.early_packets > limits::early_packets_max) {
    return fail(Code::invalid, "NIC limits: early_packets is ", limits.early_packets, ", it must be at most ",
                limits::early_packets_max);
  }
  if (limits.packet_buffer_bytes < limits.payload_bytes) {
    return fail(Code::invalid, "NIC limits: packet_buffer_bytes is ", limits.packet_buffer_bytes,
                ", it must hold one packet of ", limits.payload_bytes, " B");
  }
  return {};
}

Nic::Impl::Impl(Rank rank_, const NicLimits& limits_)
    : rank(rank_), config(limits_), idle(limits_.hpus), memory(limits_.nic_memory_bytes) {
  config.transfer_bytes = std::max<uint64_t>(config.transfer_bytes, config.payload_bytes);
}

Nic::Nic(Rank rank, const NicLimits& limits) {
  const Status good = check(limits);
  SPL_ASSERT(good.ok(), good.error().message);
  impl_ = std::make_unique<Impl>(rank, limits);
}

Nic::~Nic() = default;

void Nic::Impl::post_event(QueueId queue, const Event& event, Actions& out) {
  // A queue is optional everywhere, and may have been freed while work that reports to it was under way.
  const QueueState* state = queues.find(queue);
  if (state == nullptr) return;
  // What the host asked for itself does not take the room that is kept for messages under way.
  if (host_asked > 0 && state->flow_portals > 0 && state->index &&
      state->index->waiting() + state->events_due >= state->events_max) {
    state->index->added.fetch_add(1, std::memory_order_release);
  }
  out.add<PostEvent>(queue, event);
  note_posted(queue, *state, out);
}

// One event more, which the host cannot see yet.
void Nic::Impl::note_posted(QueueId id, const QueueState& queue, Actions& out) {
  if (!queue.index) return;
  queue.index->posted.fetch_add(1, std::memory_order_release);
  if (queue.flow_portals > 0 && queue.index->waiting() >= queue.events_max) disable_portals(id, out);
}

// The queue is full: whoever posts to it under flow control takes no more messages. The news are in reserved slots.
void Nic::Impl::disable_portals(QueueId queue, Actions& out) {
  portals.for_each([&](PortalIndex index, PortalState& portal) {
    if (portal.queue != queue || !portal.flow_control || !portal.enabled) return;
    portal.enabled = false;
    portal.disabled_event_due = true;
    tally({}, Telemetry::portals_disabled);
    if (portal.messages_open == 0) post_disabled(index, portal, out);
  });
}

void Nic::Impl::post_disabled(PortalIndex index, PortalState& portal, Actions& out) {
  if (!std::exchange(portal.disabled_event_due, false)) return;
  SPL_ASSERT(portal.flow_control && portal.messages_open == 0, "portal ", index, ", ", portal.messages_open, " open");
  Event event;
  event.kind = EventKind::pt_disabled;
  event.fail = Fail::pt_disabled;
  event.portal = index;
  post_event(portal.queue, event, out);
}

void Nic::Impl::tally(ContextId id, Telemetry which, uint64_t by) {
  const auto index = static_cast<size_t>(which);
  counts[index] += by;
  if (ContextState* context = contexts.find(id)) context->counts[index] += by;
}

void Nic::Impl::buffer_take(uint64_t bytes) {
  SPL_ASSERT(bytes <= config.packet_buffer_bytes - buffer_used, bytes, " B beside ", buffer_used, " of ",
             config.packet_buffer_bytes);
  buffer_used += bytes;
  buffer_peak = std::max(buffer_peak, buffer_used);
}

void Nic::Impl::buffer_release(uint64_t bytes) {
  SPL_ASSERT(bytes <= buffer_used, bytes, " of ", buffer_used);
  buffer_used -= bytes;
}

// Ends every public call: handlers that can start do, and queued work asks for its turn.
void Nic::Impl::settle(Actions& out) {
  if (!runnable.empty() || !masked_contexts.empty()) dispatch(out);
  if (continue_asked || (fired.empty() && !emit_due)) return;
  continue_asked = true;
  out.add<Continue>();
}

bool Nic::can_accept(const Packet& packet) const {
  if (packet.is_answer()) return true;
  return impl_->has_room(packet, impl_->message_slots.find(packet.source, packet.message));
}

void Nic::on_packet(const Packet& packet, Actions& out) {
  impl_->receive(packet, out);
  impl_->settle(out);
}

void Nic::on_command(const Command& command, Actions& out) {
  impl_->command(command, out);
  impl_->settle(out);
}

void Nic::on_her_ready(HerId her, Actions& out, const uint8_t* bytes) {
  auto& execution = impl_->executions[her.value];
  SPL_ASSERT(execution.stage == Impl::Stage::buffering, "HER ", her);
  if (bytes != nullptr) execution.her.payload = {PayloadRef::Space::local, bytes, execution.her.payload.length};
  impl_->place(her.value, out);
  impl_->settle(out);
}

bool Nic::on_handler_call(HerId her, const HandlerCall& call, Actions& out) {
  const bool stop = impl_->handler_call(her, call, out);
  if (!impl_->fired.empty()) impl_->settle(out);
  return stop;
}

void Nic::on_handler_done(HerId her, HandlerEnd end, uint32_t code, Actions& out, uint64_t cycles) {
  impl_->handler_done(her, end, code, cycles, out);
  impl_->settle(out);
}

void Nic::on_dma_done(DmaId dma, Actions& out, Fail failure) {
  if (failure != Fail::ok) impl_->fail_dma(dma, failure);
  impl_->dma_done(dma, out);
  impl_->settle(out);
}

void Nic::on_dma_read(DmaId dma, Actions& out) { impl_->dma_read(dma, out); }

void Nic::on_packet_sent(uint64_t message, Actions& out) {
  impl_->packet_sent(message, out);
  impl_->settle(out);
}

void Nic::on_packet_left(OutboundSlotId slot, Actions& out) {
  impl_->packet_left(slot, out);
  impl_->settle(out);
}

void Nic::on_continue(Actions& out) {
  SPL_ASSERT(impl_->continue_asked, "on_continue was not asked for");
  impl_->continue_asked = false;
  if (impl_->emit_due) impl_->emit_packets(out);
  impl_->run_fired(out);
  impl_->settle(out);
}

void Nic::on_put(const Put& put, Actions& out) {
  if (const Status good = impl_->check_put(put); !good) {
    impl_->note_failure(good.error());
    if (put.descriptor) put.descriptor->end();
  } else {
    impl_->start_put(put, out);
  }
  impl_->settle(out);
}

bool Nic::wants_packets(const Packet& packet) const { return impl_->wants_packets(packet); }

bool Nic::has_begun(Rank source, uint64_t message) const {
  const uint32_t slot = impl_->message_slots.find(source, message);
  return slot != no_slot && impl_->messages[slot].path != Impl::Path::waiting;
}

bool Nic::is_open(Rank source, uint64_t message) const { return impl_->message_slots.find(source, message) != no_slot; }

void Nic::on_peer_unreachable(Rank peer, Actions& out) {
  impl_->part_from(peer, out);
  impl_->settle(out);
}

void Nic::on_peer_lost(Rank peer, Actions& out) {
  impl_->lose_peer(peer, out);
  impl_->settle(out);
}

const Context* Nic::context(ContextId id) const {
  const auto* found = impl_->contexts.find(id);
  return found == nullptr ? nullptr : &found->context;
}

const NicLimits& Nic::limits() const { return impl_->config; }

NicState Nic::state() const {
  NicState state;
  state.packet_buffer_used = impl_->buffer_used;
  state.packet_buffer_peak = impl_->buffer_peak;
  state.nic_memory_used = impl_->memory.used();
  state.nic_memory_peak = impl_->memory.peak();
  state.hpus_busy = impl_->config.hpus - impl_->idle.count();
  state.hers_waiting = impl_->hers_waiting;
  SPL_ASSERT(impl_->messages_processed <= impl_->messages.size(), impl_->messages_processed);
  state.messages_open = impl_->messages.size() - impl_->messages_processed + impl_->deliveries.size();
  state.early_packets = impl_->early_packets;
  state.dmas_open = impl_->dmas.size();
  state.dropped_messages = impl_->dropped_messages;
  state.messages_outgoing = impl_->outgoing.size() + impl_->fetches.size();
  state.outbound_packets = impl_->outbound_packets.size();
  state.outbound_packets_peak = impl_->outbound_packets_peak;
  state.unexpected_headers = impl_->headers.size();
  state.triggered_waiting = impl_->waiting_commands.size();
  state.refused_packets = impl_->refused_packets;
  state.failed_commands = impl_->failed_commands;
  return state;
}

std::string Nic::waiting() const {
  const NicState now = state();
  std::ostringstream line;
  line << "NIC of rank " << impl_->rank << ": " << now.messages_open << " incoming messages open";
  uint32_t shown = 0;
  impl_->messages.for_each([&](uint32_t, const Impl::Message& message) {
    if (message.outgoing != no_slot || ++shown > 4) return;
    line << (shown == 1 ? " (" : "; ") << "message " << message.id << " of rank " << message.source << ": "
         << message.bytes_in << " of " << message.length << " B";
    if (message.path == Impl::Path::waiting) line << ", header missing";
    line << ", " << message.hers_open << " handlers, " << message.dmas_open << " DMAs";
  });
  if (shown > 0) line << (shown > 4 ? "; ...)" : ")");
  line << ", " << now.hers_waiting << " HERs wait for " << impl_->config.hpus << " HPUs of which " << now.hpus_busy
       << " are busy, " << now.dmas_open << " DMAs open, packet buffer " << now.packet_buffer_used << " of "
       << impl_->config.packet_buffer_bytes << " B (memory.packet_buffer_bytes), " << now.early_packets << " of "
       << impl_->config.early_packets << " packets ahead of their header, " << now.messages_outgoing
       << " outgoing messages unfinished, outbound buffer " << now.outbound_packets << " of "
       << impl_->config.outbound_packets << " packets (memory.outbound_packets), " << now.triggered_waiting
       << " triggered commands wait";
  shown = 0;
  impl_->counters.for_each([&](CounterId id, const Impl::CounterState& counter) {
    if (counter.heap.empty() || ++shown > 4) return;
    line << (shown == 1 ? " (" : "; ") << "counter " << id << " is " << counter.value.success << ", next at "
         << counter.heap.front().threshold;
  });
  if (shown > 0) line << (shown > 4 ? "; ...)" : ")");
  if (now.failed_commands > 0) line << ", " << now.failed_commands << " commands failed, last: " << impl_->last_failure;
  if (now.refused_packets > 0) line << ", " << now.refused_packets << " packets refused";
  return line.str();
}

}  // namespace spinloom::nic
