// A put that is whole in one packet and goes straight to its entry's memory: most are, so they have a short way.
//
// Contract: what comes out is what nic_receive, nic_dma and nic_message make of such a message: its DMA, then its
//   event, count and acknowledgement. Nothing else of it will come: no packet looks for it, no handler is at work on
//   it, and nothing of it can fail once it has matched: its bytes are here.
#include <algorithm>

#include "nic/nic_impl.hpp"

namespace spinloom::nic {

// False: it takes the way of all messages, on which `walk` saves a second one over the priority list.
bool Nic::Impl::deliver(const Packet& packet, Walk& walk, Actions& out) {
  const uint64_t length = packet.payload.length;
  const bool whole = packet.offset == 0 && length == packet.message_length && length > 0 && packet.missing == 0;
  if (packet.operation != Operation::put || !whole || length > config.transfer_bytes ||
      length > config.packet_buffer_bytes - buffer_used || packet.payload.space == PayloadRef::Space::peer) {
    return false;
  }
  const MessageFields& fields = packet.fields;
  PortalState* const portal = portals.find(PortalIndex{fields.portal_index});
  if (portal == nullptr || !portal->enabled || portal->flow_control) return false;
  if (message_slots.size() > 0 && message_slots.find(packet.source, packet.message) != no_slot) return false;
  const MatchKey key{packet.source, fields.match_bits, fields.remote_offset, length};
  walk.done = true;
  walk.found = portal->priority.find(entries, key, walk.searched);
  if (walk.found == no_slot) return false;
  ListedEntry& listed = entries[walk.found];
  const Entry& entry = listed.entry;
  const bool may = entry.options.op_put && (entry.user == any_user || entry.user == fields.user);
  if (!may || entry.context.exists() || !entry.iovec.empty()) return false;
  const uint64_t offset = entry.options.manage_local ? listed.local_offset : fields.remote_offset;
  const uint64_t taken = std::min(length, room_at(entry.length, offset));
  if (taken == 0) return false;

  out.work.entries_searched += walk.searched;
  counts[static_cast<size_t>(Telemetry::messages)] += 1;
  counts[static_cast<size_t>(Telemetry::packets)] += 1;
  counts[static_cast<size_t>(Telemetry::bytes)] += length;
  ++portal->messages_open;
  ++listed.messages_open;
  const uint32_t slot = deliveries.take();
  Delivery& delivery = deliveries[slot];
  delivery.source = packet.source;
  delivery.entry = walk.found;
  delivery.message = packet.message;
  delivery.match_bits = fields.match_bits;
  delivery.remote_offset = fields.remote_offset;
  delivery.hdr_data = fields.hdr_data;
  delivery.user = fields.user;
  delivery.ack_request = fields.ack_request;
  use(walk.found, taken);
  delivery.requested = length;
  delivery.taken = taken;
  delivery.offset = offset;
  const uint32_t dma = dmas.take();
  dmas[dma].serial = next_dma_serial++;
  dmas[dma].delivery = slot;
  DmaWrite& write = out.add<DmaWrite>();
  write.dma = DmaId{dma};
  write.host = entry.start + offset;
  write.source.space = packet.payload.space;
  write.source.bytes = packet.payload.bytes;
  write.source.length = taken;
  return true;
}

void Nic::Impl::delivered(uint32_t slot, Actions& out) {
  const Delivery& delivery = deliveries[slot];
  ListedEntry& listed = entries[delivery.entry];
  SPL_ASSERT(listed.list == ListKind::priority, "entry ", listed.id);  // as its acknowledgement says
  SPL_ASSERT(delivery.taken <= delivery.requested, delivery.taken, " of ", delivery.requested);
  const EntryOptions& options = listed.entry.options;
  const PortalIndex portal = listed.portal;
  const QueueId queue = portals.find(portal)->queue;
  const QueueState* const told = queues.find(queue);
  if (!options.event_comm_disable && !options.event_success_disable && told != nullptr) {
    PostEvent& post = out.add<PostEvent>();
    post.queue = queue;
    Event& event = post.event;
    event.kind = EventKind::put;
    event.initiator = delivery.source;
    event.portal = portal;
    event.entry = listed.id;
    event.match_bits = delivery.match_bits;
    event.requested_bytes = delivery.requested;
    event.manipulated_bytes = delivery.taken;
    event.remote_offset = delivery.remote_offset;
    event.start = reinterpret_cast<uint64_t>(listed.entry.start) + delivery.offset;
    event.hdr_data = delivery.hdr_data;
    event.user_ptr = listed.entry.user_ptr;
    event.user = delivery.user;
    note_posted(queue, *told, out);
  }
  if (options.ct_comm) count(listed.entry.counter, {options.ct_bytes ? delivery.taken : 1, 0}, out);
  SPL_ASSERT(listed.messages_open > 0, "entry ", listed.id);
  --listed.messages_open;
  const bool silent = options.ack_disable;
  if (!listed.linked) {
    post_unlinked(delivery.entry, out);
    release_entry(delivery.entry, out);
  }
  leave(portal, out);
  if (delivery.ack_request != AckRequest::none) {
    MessageFields& answer = add_ack(delivery.source, delivery.message, out);
    if (!silent) {
      answer.ack_request = delivery.ack_request;
      answer.portal_index = portal.value;
      answer.remote_offset = delivery.offset;
      answer.manipulated_bytes = delivery.taken;
    }
  }
  deliveries.give_back(slot);
}

}  // namespace spinloom::nic
