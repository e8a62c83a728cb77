// Messages without packets, or with too few: messages on which the host invokes handlers, and messages of peers that
// are lost.
#include "nic/portals/nic_impl.hpp"

namespace spinloom::nic {

// Treats the host's own message as one that has just come in one packet and matched this entry.
Status Nic::Impl::invoke(const Invoke& command, Actions& out) {
  SPL_ASSIGN(const uint32_t entry_slot, portals.slot_of(command.entry));
  const ListedEntry& listed = portals.entry(entry_slot);
  const uint64_t bytes = command.bytes.size();
  if (listed.auto_unlinked) return fail(Code::invalid, "entry ", command.entry, " has already left its list by itself");
  if (listed.list == ListKind::overflow) {
    return fail(Code::invalid, "entry ", command.entry, " is in the overflow list, whose messages wait to be claimed");
  }
  if (!listed.entry.context.exists()) {
    return fail(Code::invalid, "entry ", command.entry, " has no context, so there are no handlers to run");
  }
  if (bytes > config.payload_bytes) {
    return fail(Code::invalid, "handlers are invoked on at most one packet of ", config.payload_bytes, " B, ", bytes,
                " B were given");
  }
  if (bytes > buffer.free() || handler_messages >= config.handler_messages) {
    return fail(Code::exhausted, "entry ", command.entry, " cannot be invoked now: the packet buffer holds ",
                buffer.used(), " of ", config.packet_buffer_bytes, " B (memory.packet_buffer_bytes), handlers work on ",
                handler_messages, " of ", config.handler_messages, " messages (scheduler.messages)");
  }
  const uint32_t slot = messages.take();
  Message& message = messages[slot];
  message.source = rank;
  message.id = initiator.new_name();
  message_slots.add(message.source, message.id, slot);
  message.length = message.requested = message.bytes_in = bytes;
  message.invoked_bytes = command.bytes;
  message.fields.portal_index = listed.portal.value;
  message.fields.match_bits = listed.entry.match_bits;
  message.fields.hdr_data = command.hdr_data;
  attach(slot, entry_slot, MatchKey{rank, message.fields.match_bits, 0, bytes});
  Packet packet;
  packet.source = rank;
  packet.message_length = bytes;
  packet.payload = {PayloadRef::Space::inline_bytes, message.invoked_bytes.data(), bytes};
  accept_payload(slot, packet, false, out);
  advance(slot, out);
  return {};
}

// Ends all work under way with this peer as undeliverable, so that nobody waits for ever.
void Nic::Impl::lose_peer(Rank peer, Actions& out) {
  initiator.lose_peer(peer, out);
  std::vector<uint32_t> begun;
  messages.for_each([&](uint32_t slot, const Message& message) {
    if (message.source == peer && message.bytes_in < message.length) begun.push_back(slot);
  });
  for (const uint32_t slot : begun) lose_message(slot, out);
  portals.lose(peer, out);
}

// Ends a message whose rest never comes.
void Nic::Impl::lose_message(uint32_t slot, Actions& out) {
  Message& message = messages[slot];
  SPL_ASSERT(message.bytes_in < message.length, message.bytes_in, " of ", message.length);
  SPL_ASSERT(message.early.size() <= early_packets, message.early.size(), " of ", early_packets);
  if (message.path == Path::waiting) {  // the header has not come either
    for (const Packet& packet : message.early) buffer.release(packet.payload.length);
    early_packets -= static_cast<uint32_t>(message.early.size());
    message_slots.remove(message.source, message.id);
    messages.give_back(slot);
    return;
  }
  message.missing = message.length - message.bytes_in;
  message.bytes_in = message.length;
  message.record(Fail::undeliverable);
  advance(slot, out);
}

bool Nic::Impl::is_quiescent(Rank peer) const {
  if (!portals.has_lost(peer) || !initiator.is_quiescent(peer)) return false;
  bool open = false;
  messages.for_each([&](uint32_t, const Message& message) { open = open || message.source == peer; });
  deliveries.for_each([&](uint32_t, const Delivery& delivery) { open = open || delivery.source == peer; });
  return !open;
}

// Both ends have forgotten all that was under way, so nothing that comes from now on can mean it.
void Nic::Impl::readmit(Rank peer, Actions& out) {
  SPL_ASSERT(is_quiescent(peer), "rank ", peer, " is not lost, or work with it is under way");
  initiator.readmit(peer);
  portals.readmit(peer, out);
}

}  // namespace spinloom::nic
