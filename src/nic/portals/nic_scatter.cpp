// Scatter lists: writes a message's bytes to the elements of its entry's list.
//
// Contract: the NIC holds config.iovec_entries elements at a time. The first elements came along with the append; a
//   piece that needs others carries Scatter::refill (SC'19 datatypes paper, section 5.3). Packets may come in any
//   order: a packet that does not continue the last one finds its place by the ends of the elements, which are
//   computed when they are first needed. Work: at most one piece for each byte of the packet, since no element is
//   empty; and the elements, once for each entry.
#include <algorithm>

#include "nic/portals/entry_memory.hpp"
#include "nic/portals/nic_impl.hpp"

namespace spinloom::nic {

// `buffer_bytes` is the payload's part of the packet buffer.
void Nic::Impl::scatter(uint32_t slot, const PayloadRef& payload, uint64_t offset, uint64_t buffer_bytes,
                        Actions& out) {
  Message& message = messages[slot];
  const ListedEntry& listed = portals.entry(message.entry);
  const Entry& entry = listed.entry;
  IovecCursor& cursor = message.iovec;
  const uint64_t begin = message.offset + offset;
  uint64_t bytes = std::min(payload.length, message.landing_bytes - offset);
  if (begin != cursor.position) {
    const IovecView list = list_of(listed);
    cursor.index = element_at(list, begin);
    cursor.within = begin - (list.ends[cursor.index] - list.elements[cursor.index].length);
  }
  cursor.position = begin + bytes;
  PayloadRef source = payload;
  while (bytes > 0) {
    SPL_ASSERT(cursor.index < entry.iovec.size(), "element ", cursor.index, " of ", entry.iovec.size());
    const IovecElement& element = entry.iovec[cursor.index];
    SPL_ASSERT(element.length > 0, "element ", cursor.index, " is empty");
    const uint64_t needed = cursor.index / config.iovec_entries;
    const bool refill = needed != cursor.held;
    cursor.held = needed;
    source.length = std::min(bytes, element.length - cursor.within);
    // The packet's bytes leave the buffer when its last piece has been read: DMAs are served in order.
    const uint64_t held = source.length == bytes ? buffer_bytes : 0;
    const DmaId dma = dmas.issue(message.dmas, {OwnerKind::incoming, slot}, held);
    out.add<DmaWrite>(dma, element.base + cursor.within, source, HerId{}, refill ? Scatter::refill : Scatter::held);
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
