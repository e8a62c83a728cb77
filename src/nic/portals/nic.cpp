#include "nic/portals/nic.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include "nic/portals/nic_impl.hpp"

namespace spinloom::nic {

namespace {

NicLimits with_transfer(NicLimits limits) {
  limits.transfer_bytes = std::max<uint64_t>(limits.transfer_bytes, limits.payload_bytes);
  return limits;
}

}  // namespace

Nic::Impl::Impl(Rank rank_, const NicLimits& limits_, HostMemory* memory_)
    : rank(rank_),
      config(with_transfer(limits_)),
      memory(memory_),
      queues(portals),
      triggers(config.triggered_commands),
      contexts(config.nic_memory_bytes),
      portals(queues, triggers, contexts, config.unexpected_headers),
      buffer(config.packet_buffer_bytes),
      executions(buffer),
      scheduler(config.hpus),
      requests(dmas),
      initiator(rank, config, {queues, triggers, portals, contexts, executions, dmas, memory}) {}

Nic::Nic(Rank rank, const NicLimits& limits, HostMemory* memory) {
  const Status valid = check(limits);
  SPL_ASSERT(valid.ok(), valid.error().message);
  impl_ = std::make_unique<Impl>(rank, limits, memory);
}

Nic::~Nic() = default;

// Ends every public call: starts the handlers that can start, and asks for a turn if work is queued.
void Nic::Impl::settle(Actions& out) {
  if (scheduler.has_work()) dispatch(out);
  if (continue_asked || (!triggers.has_fired() && !initiator.emit_due())) return;
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
  Execution& execution = impl_->executions[her];
  SPL_ASSERT(execution.stage == Stage::buffering, "HER ", her);
  if (bytes != nullptr) execution.her.payload = {PayloadRef::Space::local, bytes, execution.her.payload.length};
  impl_->route(her, out);
  impl_->settle(out);
}

bool Nic::on_handler_call(HerId her, const HandlerCall& call, Actions& out) {
  const bool stop = impl_->handler_call(her, call, out);
  if (impl_->triggers.has_fired() || impl_->initiator.emit_due()) impl_->settle(out);
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

void Nic::on_dma_read(DmaId dma, Actions& out) {
  const std::optional<HerId> goes_on = impl_->dmas.source_read(dma);
  if (goes_on) out.add<Resume>(*goes_on, uint32_t{0});
}

void Nic::on_packet_sent(uint64_t message, Actions& out) {
  const std::optional<uint64_t> replied = impl_->initiator.packet_sent(message, out);
  if (replied) impl_->reply_sent(static_cast<uint32_t>(*replied), out);
  impl_->settle(out);
}

void Nic::on_packet_left(OutboundSlotId slot, Actions& out) {
  impl_->initiator.packet_left(slot, out);
  impl_->settle(out);
}

void Nic::on_continue(Actions& out) {
  SPL_ASSERT(impl_->continue_asked, "on_continue was not asked for");
  impl_->continue_asked = false;
  if (impl_->initiator.emit_due()) impl_->initiator.emit(out);
  impl_->run_fired(out);
  impl_->settle(out);
}

void Nic::on_put(const Put& put, Actions& out) {
  impl_->put(put, out);
  impl_->settle(out);
}

bool Nic::wants_packets(const Packet& packet) const { return impl_->wants_packets(packet); }

bool Nic::has_begun(Rank source, uint64_t message) const {
  const uint32_t slot = impl_->message_slots.find(source, message);
  return slot != no_slot && impl_->messages[slot].path != Impl::Path::waiting;
}

bool Nic::is_open(Rank source, uint64_t message) const { return impl_->message_slots.find(source, message) != no_slot; }

void Nic::on_peer_unreachable(Rank peer, Actions& out) {
  impl_->initiator.lose_peer(peer, out);
  impl_->settle(out);
}

void Nic::on_peer_lost(Rank peer, Actions& out) {
  impl_->lose_peer(peer, out);
  impl_->settle(out);
}

bool Nic::is_quiescent(Rank peer) const { return impl_->is_quiescent(peer); }

AwaitedReplies Nic::awaited_replies(Rank peer) const { return impl_->initiator.awaited_replies(peer); }

void Nic::on_peer_back(Rank peer, Actions& out) {
  impl_->readmit(peer, out);
  impl_->settle(out);
}

void Nic::set_publisher(Publisher& publisher) { impl_->portals.set_publisher(publisher); }

std::vector<PlainEntry> Nic::publish(PortalIndex portal, uint32_t most) { return impl_->portals.publish(portal, most); }

bool Nic::is_settled() const {
  return impl_->messages.size() == 0 && impl_->deliveries.size() == 0 && !impl_->triggers.has_fired();
}

const Context* Nic::context(ContextId id) const { return impl_->contexts.find(id); }

const NicLimits& Nic::limits() const { return impl_->config; }

std::optional<CounterValue> Nic::counter(CounterId id) const {
  if (!impl_->triggers.exists(id)) return std::nullopt;
  return impl_->triggers.value(id);
}

NicState Nic::state() const {
  NicState state;
  state.packet_buffer_used = impl_->buffer.used();
  state.packet_buffer_peak = impl_->buffer.peak();
  state.nic_memory_used = impl_->contexts.memory().used();
  state.nic_memory_peak = impl_->contexts.memory().peak();
  state.hpus_busy = impl_->scheduler.hpus_busy();
  state.hers_waiting = impl_->executions.waiting();
  state.messages_open = impl_->messages.size() + impl_->deliveries.size();
  state.early_packets = impl_->early_packets;
  state.dmas_open = impl_->dmas.size();
  state.dropped_messages = impl_->dropped_messages;
  state.messages_outgoing = impl_->initiator.size();
  state.outbound_packets = impl_->initiator.outbound_buffer().size();
  state.outbound_packets_peak = impl_->initiator.outbound_buffer().peak();
  state.unexpected_headers = impl_->portals.headers();
  state.triggered_waiting = impl_->triggers.size();
  state.refused_packets = impl_->refused_packets;
  state.failed_commands = impl_->failed_commands;
  return state;
}

std::string Nic::describe_waiting() const {
  const NicState now = state();
  std::ostringstream line;
  line << "NIC of rank " << impl_->rank << ": " << now.messages_open << " incoming messages open";
  uint32_t shown = 0;
  impl_->messages.for_each([&](uint32_t, const Impl::Message& message) {
    if (++shown > 4) return;
    line << (shown == 1 ? " (" : "; ") << "message " << message.id << " of rank " << message.source << ": "
         << message.bytes_in << " of " << message.length << " B";
    if (message.path == Impl::Path::waiting) line << ", header missing";
    line << ", " << message.hers_open << " handlers, " << message.dmas.open << " DMAs";
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
  impl_->triggers.for_each_waited([&](CounterId id, const CounterValue& value, uint64_t threshold) {
    if (++shown > 4) return;
    line << (shown == 1 ? " (" : "; ") << "counter " << id << " is " << value.success << ", next at " << threshold;
  });
  if (shown > 0) line << (shown > 4 ? "; ...)" : ")");
  if (now.failed_commands > 0) line << ", " << now.failed_commands << " commands failed, last: " << impl_->last_failure;
  if (now.refused_packets > 0) line << ", " << now.refused_packets << " packets refused";
  return line.str();
}

}  // namespace spinloom::nic
