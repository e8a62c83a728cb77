// Quick puts: all that a put without decisions does, in two functions at its initiator and one at its target.
#include <algorithm>

#include "nic/portals/nic_impl.hpp"

namespace spinloom::nic {

std::optional<uint64_t> Nic::quick_put(const QuickPut& put) const {
  const Impl& nic = *impl_;
  if (!nic.initiator.may_put_quickly(put.length) || (put.counter.exists() && !nic.triggers.only_adds(put.counter)) ||
      (put.queue.exists() && !nic.queues.exists(put.queue)) ||
      !nic.initiator.is_accessible(put.sparse, put.bytes, put.length, Access::read)) {
    return std::nullopt;
  }
  return nic.initiator.next_name();
}

QuickCount Nic::quick_sent(const QuickPut& put) {
  impl_->initiator.count_quick();
  return put.counted > 0 ? QuickCount{put.counter, impl_->triggers.add(put.counter, put.counted)} : QuickCount{};
}

// Only the first entry of the priority list is compared; the general way walks the list.
bool Nic::quick_landing(const Packet& packet, QuickLanding& landing) {
  Impl& nic = *impl_;
  const uint64_t length = packet.payload.length;
  const MessageFields& fields = packet.fields;
  if (packet.operation != Operation::put || fields.ack_request != AckRequest::none || packet.offset != 0 ||
      length == 0 || length != packet.message_length || packet.missing != 0 || length > nic.config.transfer_bytes ||
      length > nic.buffer.free() || packet.payload.space != PayloadRef::Space::local) {
    return false;
  }
  const PortalTable::Portal* const portal = nic.portal_of(packet);
  if (portal == nullptr || !portal->enabled) return false;
  if (nic.message_slots.size() > 0 && nic.message_slots.find(packet.source, packet.message) != no_slot) return false;
  const uint32_t first = portal->priority.first();
  if (first == no_slot) return false;
  const ListedEntry& listed = nic.portals.entry(first);
  const Entry& entry = listed.entry;
  const EntryOptions& options = entry.options;
  if (!matches(listed, {packet.source, fields.match_bits, fields.remote_offset, length}) || !options.op_put ||
      (entry.user != any_user && entry.user != fields.user) || options.use_once || options.manage_local ||
      entry.context.exists() || !entry.iovec.empty() || (options.ct_comm && !nic.triggers.only_adds(entry.counter))) {
    return false;
  }
  if (portal->flow_control && events_of(entry) > 0) return false;  // room is kept for them
  const uint64_t taken = std::min(length, room_at(entry.length, fields.remote_offset));
  if (entry.sparse && !nic.is_accessible(listed, fields.remote_offset, taken, Access::write)) return false;
  landing.queue = {};
  if (!options.event_comm_disable && !options.event_success_disable) {
    if (nic.queues.exists(portal->queue)) {
      if (nic.queues.is_held(portal->queue)) return false;  // an event may fill the queue
      landing.queue = portal->queue;
      landing.event = Event{};
      const WholePut put{packet.source, fields.user, fields.match_bits,   fields.remote_offset, fields.hdr_data,
                         length,        taken,       fields.remote_offset};
      put.fill(landing.event, listed);
      nic.queues.count_posted(portal->queue);
    }
  }
  landing.host = entry.start + fields.remote_offset;
  landing.length = taken;
  landing.count = QuickCount{};
  if (options.ct_comm) {
    landing.count = {entry.counter, nic.triggers.add(entry.counter, options.ct_bytes ? taken : 1)};
  }
  nic.contexts.tally(Telemetry::messages);
  nic.contexts.tally(Telemetry::packets);
  nic.contexts.tally(Telemetry::bytes, length);
  return true;
}

}  // namespace spinloom::nic
