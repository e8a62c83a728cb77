// The short way of a put that is whole in one packet and goes straight to its entry's memory. Most puts are such
// puts.
//
// Contract: the results are those of nic_receive, nic_handler and nic_message for such a message: its DMA, then its
//   event, count and acknowledgement. No further packet belongs to the message, no handler works on it, and it cannot
//   fail once it has matched, because its bytes are here.
#include <algorithm>

#include "nic/portals/nic_impl.hpp"

namespace spinloom::nic {

// False: the packet takes the general way. `walk` keeps the result of the walk over the priority list for it.
bool Nic::Impl::deliver(const Packet& packet, Walk& walk, Actions& out) {
  const uint64_t length = packet.payload.length;
  const bool is_whole = packet.offset == 0 && length == packet.message_length && length > 0 && packet.missing == 0;
  if (packet.operation != Operation::put || !is_whole || length > config.transfer_bytes || length > buffer.free() ||
      packet.payload.space == PayloadRef::Space::peer) {
    return false;
  }
  const MessageFields& fields = packet.fields;
  const PortalTable::Portal* const portal = portal_of(packet);
  if (portal == nullptr || !portal->enabled) return false;
  if (message_slots.size() > 0 && message_slots.find(packet.source, packet.message) != no_slot) return false;
  const MatchKey key{packet.source, fields.match_bits, fields.remote_offset, length};
  walk.done = true;
  walk.entry = portals.find_priority(*portal, key, walk.searched);
  if (walk.entry == no_slot) return false;
  const ListedEntry& listed = portals.entry(walk.entry);
  const Entry& entry = listed.entry;
  const bool permitted = entry.options.op_put && (entry.user == any_user || entry.user == fields.user);
  if (!permitted || entry.context.exists() || !entry.iovec.empty()) return false;
  if (portal->flow_control && events_of(entry) > 0) return false;  // room is kept for them
  const uint64_t offset = entry.options.manage_local ? listed.local_offset : fields.remote_offset;
  const uint64_t taken = std::min(length, room_at(entry.length, offset));
  if (taken == 0 || (entry.sparse && !is_accessible(listed, offset, taken, Access::write))) return false;

  out.work.entries_searched += walk.searched;
  contexts.tally(Telemetry::messages);
  contexts.tally(Telemetry::packets);
  contexts.tally(Telemetry::bytes, length);
  const auto [slot, delivery] = deliveries.make();
  delivery.source = packet.source;
  delivery.entry = walk.entry;
  delivery.message = packet.message;
  delivery.match_bits = fields.match_bits;
  delivery.remote_offset = fields.remote_offset;
  delivery.hdr_data = fields.hdr_data;
  delivery.user = fields.user;
  delivery.ack_request = fields.ack_request;
  portals.attach_whole(walk.entry, taken);
  delivery.requested_bytes = length;
  delivery.taken_bytes = taken;
  delivery.offset = offset;
  DmaWrite& write = out.add<DmaWrite>();
  write.dma = dmas.issue_unqueued({OwnerKind::whole_put, slot});
  write.host = entry.start + offset;
  write.source.space = packet.payload.space;
  write.source.bytes = packet.payload.bytes;
  write.source.length = taken;
  return true;
}

void Nic::Impl::delivered(uint32_t slot, Actions& out) {
  const Delivery& delivery = deliveries[slot];
  const ListedEntry& listed = portals.entry(delivery.entry);
  SPL_ASSERT(listed.list == ListKind::priority, "entry ", listed.id);  // the acknowledgement says so
  SPL_ASSERT(delivery.taken_bytes <= delivery.requested_bytes, delivery.taken_bytes, " of ", delivery.requested_bytes);
  const EntryOptions& options = listed.entry.options;
  const PortalIndex portal = listed.portal;
  if (!options.event_comm_disable && !options.event_success_disable) {
    queues.post_with(portals.find(portal)->queue, out, [&](Event& event) { delivery.fill(event, listed); });
  }
  if (options.ct_comm) triggers.count(listed.entry.counter, {options.ct_bytes ? delivery.taken_bytes : 1, 0}, out);
  const bool ack_disabled = options.ack_disable;
  portals.detach_whole(delivery.entry, out);
  portals.leave(portal, out);
  if (delivery.ack_request != AckRequest::none) {
    MessageFields& ack = initiator.acknowledge(delivery.source, delivery.message, out);
    if (!ack_disabled) {
      ack.ack_request = delivery.ack_request;
      ack.portal_index = portal.value;
      ack.remote_offset = delivery.offset;
      ack.manipulated_bytes = delivery.taken_bytes;
    }
  }
  deliveries.give_back(slot);
}

}  // namespace spinloom::nic
