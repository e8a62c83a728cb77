// Quick puts: what a put does where nothing must be decided, in one function at each end.
#include <algorithm>

#include "nic/nic_impl.hpp"

namespace spinloom::nic {

// Nothing waits for the counter and nothing resets it: counting is adding.
bool Nic::Impl::only_adds(CounterId id) const {
  const CounterState* const counter = counters.find(id);
  return counter != nullptr && counter->heap.empty() && counter->resets_at == 0;
}

QuickCount Nic::Impl::add_quickly(CounterId id, uint64_t by) {
  CounterState& counter = *counters.find(id);
  counter.value.success += by;
  return {id, counter.value};
}

std::optional<uint64_t> Nic::quick_put(const QuickPut& put) const {
  const Impl& nic = *impl_;
  if (put.length > nic.config.at_once_bytes || !nic.outbound.empty() || !nic.flowing.empty() || !nic.lost.empty() ||
      (put.counter.exists() && !nic.only_adds(put.counter)) ||
      (put.queue.exists() && nic.queues.find(put.queue) == nullptr)) {
    return std::nullopt;
  }
  return message_id(nic.next_message_sequence, no_slot);
}

QuickCount Nic::quick_sent(const QuickPut& put) {
  ++impl_->next_message_sequence;
  return put.counted > 0 ? impl_->add_quickly(put.counter, put.counted) : QuickCount{};
}

// The first entry of the priority list takes it, or nobody does: a walk over the list is the long way's.
bool Nic::quick_landing(const Packet& packet, QuickLanding& landing) {
  Impl& nic = *impl_;
  const uint64_t length = packet.payload.length;
  const MessageFields& fields = packet.fields;
  if (packet.operation != Operation::put || fields.ack_request != AckRequest::none || packet.offset != 0 ||
      length == 0 || length != packet.message_length || packet.missing != 0 || length > nic.config.transfer_bytes ||
      length > nic.config.packet_buffer_bytes - nic.buffer_used || packet.payload.space != PayloadRef::Space::local) {
    return false;
  }
  Impl::PortalState* const portal = nic.portals.find(PortalIndex{fields.portal_index});
  if (portal == nullptr || !portal->enabled || portal->flow_control) return false;
  if (nic.message_slots.size() > 0 && nic.message_slots.find(packet.source, packet.message) != no_slot) return false;
  const uint32_t first = portal->priority.first();
  if (first == no_slot) return false;
  const ListedEntry& listed = nic.entries[first];
  const Entry& entry = listed.entry;
  const EntryOptions& options = entry.options;
  if (!matches(listed, {packet.source, fields.match_bits, fields.remote_offset, length}) || !options.op_put ||
      (entry.user != any_user && entry.user != fields.user) || options.use_once || options.manage_local ||
      entry.context.exists() || !entry.iovec.empty() || (options.ct_comm && !nic.only_adds(entry.counter))) {
    return false;
  }
  const uint64_t taken = std::min(length, room_at(entry.length, fields.remote_offset));
  landing.queue = {};
  if (!options.event_comm_disable && !options.event_success_disable) {
    const Impl::QueueState* const queue = nic.queues.find(portal->queue);
    if (queue != nullptr && queue->flow_portals > 0) return false;  // it may fill, and switch others off
    if (queue != nullptr) {
      landing.queue = portal->queue;
      landing.event = Event{};
      landing.event.kind = EventKind::put;
      landing.event.initiator = packet.source;
      landing.event.portal = listed.portal;
      landing.event.entry = listed.id;
      landing.event.match_bits = fields.match_bits;
      landing.event.requested_bytes = length;
      landing.event.manipulated_bytes = taken;
      landing.event.remote_offset = fields.remote_offset;
      landing.event.start = reinterpret_cast<uint64_t>(entry.start) + fields.remote_offset;
      landing.event.hdr_data = fields.hdr_data;
      landing.event.user_ptr = entry.user_ptr;
      landing.event.user = fields.user;
      if (queue->index) queue->index->posted.fetch_add(1, std::memory_order_release);
    }
  }
  landing.host = entry.start + fields.remote_offset;
  landing.length = taken;
  landing.count = options.ct_comm ? nic.add_quickly(entry.counter, options.ct_bytes ? taken : 1) : QuickCount{};
  nic.counts[static_cast<size_t>(Telemetry::messages)] += 1;
  nic.counts[static_cast<size_t>(Telemetry::packets)] += 1;
  nic.counts[static_cast<size_t>(Telemetry::bytes)] += length;
  return true;
}

}  // namespace spinloom::nic
