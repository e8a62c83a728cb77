// Scatter lists: a message's bytes go, in order, into the elements of its entry's list.
//
// Contract: the NIC holds config.iovec_entries elements at a time; the first ones came along with the append, and the
//   piece that needs one beyond them carries Scatter::refill (SC'19 datatypes paper, section 5.3). A packet that is
//   not the next one in order finds no place: its bytes are dropped and the message fails with Fail::iovec_order.
//   Work: at most one piece for each byte of the packet, since no element is empty.
#include <algorithm>

#include "nic/nic_impl.hpp"

namespace spinloom::nic {

// `buffered`: the packet came ahead of its header and holds its bytes of the packet buffer already.
void Nic::Impl::scatter(uint32_t slot, const Packet& packet, bool buffered, Actions& out) {
  Message& message = messages[slot];
  const Entry& entry = entries[message.entry].entry;
  IovecCursor& cursor = message.iovec;
  uint64_t bytes = std::min(packet.payload.length, message.landing - packet.offset);
  if (packet.offset != cursor.position) {
    record_failure(message, Fail::iovec_order);
    message.dropped_bytes += bytes;
    if (buffered) buffer_release(packet.payload.length);
    return;
  }
  cursor.position += bytes;
  PayloadRef source = packet.payload;
  while (bytes > 0) {
    SPL_ASSERT(cursor.index < entry.iovec.size(), "element ", cursor.index, " of ", entry.iovec.size());
    const IovecElement& element = entry.iovec[cursor.index];
    SPL_ASSERT(element.length > 0, "element ", cursor.index, " is empty");
    const bool first_use = cursor.within == 0;
    const bool refill = first_use && cursor.index > 0 && cursor.index % config.iovec_entries == 0;
    source.length = std::min(bytes, element.length - cursor.within);
    const uint32_t dma = issue_dma(slot, no_slot);
    // The packet's place is free when its last piece has been read; DMAs are served in order.
    dmas[dma].buffer_bytes = buffered && source.length == bytes ? packet.payload.length : 0;
    out.add<DmaWrite>(DmaId{dma}, element.base + cursor.within, source, HerId{},
                      refill ? Scatter::refill : Scatter::held);
    bytes -= source.length;
    source.bytes += source.length;
    cursor.within += source.length;
    if (cursor.within == element.length) {
      ++cursor.index;
      cursor.within = 0;
    }
  }
}

}  // namespace spinloom::nic
