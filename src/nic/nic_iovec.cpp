// Scatter lists: a message's bytes go into the elements of its entry's list, replies come from there, puts leave from
// their descriptor's.
//
// Contract: the NIC holds config.iovec_entries elements at a time; the first ones came along with the append, and the
//   piece that needs others carries Scatter::refill (SC'19 datatypes paper, section 5.3). Packets may come in any
//   order: one that does not follow the last one finds its place by the elements' ends, which are computed when they
//   are first needed. Work: at most one piece for each byte of the packet, since no element is empty; once an entry,
//   its elements.
#include <algorithm>

#include "nic/nic_impl.hpp"

namespace spinloom::nic {

IovecView Nic::Impl::list_of(const ListedEntry& listed) {
  if (listed.entry.iovec.empty()) return {};
  if (listed.iovec_ends.empty()) listed.iovec_ends = ends_of(listed.entry.iovec);
  return {listed.entry.iovec, listed.iovec_ends};
}

// The address of a place in an entry's memory; of a list's end, the end of its last element.
uint64_t Nic::Impl::start_of(const ListedEntry& listed, uint64_t offset) {
  const Entry& entry = listed.entry;
  if (entry.iovec.empty()) return reinterpret_cast<uint64_t>(entry.start) + offset;
  if (offset == 0) return reinterpret_cast<uint64_t>(entry.iovec.front().base);
  const IovecView list = list_of(listed);
  const size_t index = std::min(element_at(list, offset), list.elements.size() - 1);
  const IovecElement& element = list.elements[index];
  return reinterpret_cast<uint64_t>(element.base) +
         std::min(element.length, offset - (list.ends[index] - element.length));
}

// Bytes that leave from a list: of an entry that a get reads, or of a descriptor.
std::vector<PayloadRef> Nic::Impl::listed_pieces(const Put& put, uint64_t offset, uint64_t length) const {
  IovecView list;
  if (put.operation == Operation::reply) {
    const Message& message = messages[static_cast<uint32_t>(put.user_ptr)];
    list = list_of(entries[message.entry]);
    offset += message.offset;
  } else {
    list = put.descriptor->list();
    offset += put.descriptor_offset;
  }
  std::vector<PayloadRef> pieces;
  for (const IovecElement& piece : nic::pieces_of(list, offset, length)) {
    pieces.push_back({PayloadRef::Space::local, piece.base, piece.length});
  }
  return pieces;
}

// `buffered`: the packet came ahead of its header and holds its bytes of the packet buffer already.
void Nic::Impl::scatter(uint32_t slot, const Packet& packet, bool buffered, Actions& out) {
  Message& message = messages[slot];
  const ListedEntry& listed = entries[message.entry];
  const Entry& entry = listed.entry;
  IovecCursor& cursor = message.iovec;
  const uint64_t begin = message.offset + packet.offset;
  uint64_t bytes = std::min(packet.payload.length, message.landing - packet.offset);
  if (begin != cursor.position) {
    const IovecView list = list_of(listed);
    cursor.index = element_at(list, begin);
    cursor.within = begin - (list.ends[cursor.index] - list.elements[cursor.index].length);
  }
  cursor.position = begin + bytes;
  PayloadRef source = packet.payload;
  while (bytes > 0) {
    SPL_ASSERT(cursor.index < entry.iovec.size(), "element ", cursor.index, " of ", entry.iovec.size());
    const IovecElement& element = entry.iovec[cursor.index];
    SPL_ASSERT(element.length > 0, "element ", cursor.index, " is empty");
    const uint64_t needed = cursor.index / config.iovec_entries;
    const bool refill = needed != cursor.held;
    cursor.held = needed;
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
