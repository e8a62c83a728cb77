// DMAs under way: O(1) each, with the order that events need.
//
// A message links its open DMAs in order of issue. One without an event leaves the list when it is done; one with an
// event waits until it is the first, that is, until all earlier ones are done.
#include "nic/nic_impl.hpp"

namespace spinloom::nic {
namespace {

// A handle names the slot and, so that it does not name the slot's next transfer, a part of the serial number.
constexpr unsigned handle_slot_bits = 20;
constexpr uint32_t handle_slot_mask = (1u << handle_slot_bits) - 1;
constexpr uint32_t handle_serials = (1u << (32 - handle_slot_bits)) - 1;  // no handle is DmaId::none_value

}  // namespace

uint32_t Nic::Impl::handle_of(uint32_t slot) const {
  return dmas[slot].serial % handle_serials << handle_slot_bits | slot;
}

// The open transfer of this handler that a handle names; none: it is done and forgotten, or never was.
uint32_t Nic::Impl::dma_of(uint32_t handle, uint32_t execution) const {
  const uint32_t slot = handle & handle_slot_mask;
  const bool named = dmas.taken(slot) && dmas[slot].execution == execution && handle_of(slot) == handle;
  return named ? slot : no_slot;
}

uint32_t Nic::Impl::issue_dma(uint32_t slot, uint32_t execution) {
  const uint32_t index = dmas.take();
  SPL_ASSERT(index <= handle_slot_mask, "DMA ", index, " has no handle");
  Dma& dma = dmas[index];
  dma.serial = next_dma_serial++;
  Message& message = messages[slot];
  dma.message = slot;
  dma.execution = execution;
  dma.previous = message.dma_last;
  (message.dma_last == no_slot ? message.dma_first : dmas[message.dma_last].next) = index;
  message.dma_last = index;
  ++message.dmas_open;
  if (execution != no_slot) ++executions[execution].dmas_open;
  return index;
}

// A handler's DMA over several elements of a list: one transfer a piece, done when all are.
void Nic::Impl::issue_pieces(uint32_t whole, uint8_t* local, const std::vector<IovecElement>& pieces, bool to_host,
                             Actions& out) {
  SPL_ASSERT(pieces.size() > 1 && dmas[whole].whole == no_slot, pieces.size(), " pieces of DMA ", whole);
  const HerId her{dmas[whole].execution};
  const bool blocking = dmas[whole].blocks;
  dmas[whole].pieces = static_cast<uint32_t>(pieces.size());
  dmas[whole].pieces_unread = dmas[whole].pieces;
  for (const IovecElement& piece : pieces) {
    const uint32_t index = dmas.take();
    dmas[index].serial = next_dma_serial++;
    dmas[index].whole = whole;
    if (to_host) {
      DmaWrite write{DmaId{index}, piece.base, {PayloadRef::Space::local, local, piece.length}, her};
      write.blocking = blocking;
      out.list.emplace_back(write);
    } else {
      out.add<DmaRead>(DmaId{index}, piece.base, local, piece.length, her);
    }
    local += piece.length;
  }
}

void Nic::Impl::fail_dma(DmaId id, Fail failure) {
  const Dma& dma = dmas[id.value];
  SPL_ASSERT(failure != Fail::ok && dma.delivery == no_slot, "DMA ", id, ": ", name_of(failure));
  const uint32_t whole = dma.whole == no_slot ? id.value : dma.whole;
  if (dma.fetch != no_slot) {
    fetches[dma.fetch].result.fail = static_cast<uint8_t>(failure);
  } else {
    record_failure(messages[dmas[whole].message], failure);
  }
}

void Nic::Impl::forget_dma(Message& message, uint32_t index) {
  const Dma& dma = dmas[index];
  SPL_ASSERT(message.dmas_open > 0 && dma.done, "DMA ", index, " of message ", message.id);
  (dma.previous == no_slot ? message.dma_first : dmas[dma.previous].next) = dma.next;
  (dma.next == no_slot ? message.dma_last : dmas[dma.next].previous) = dma.previous;
  dmas.give_back(index);
  --message.dmas_open;
}

// The source of a blocking write has been read: its handler goes on, the bytes are on their way.
void Nic::Impl::dma_read(DmaId id, Actions& out) {
  Dma& dma = dmas[id.value];
  if (dma.whole != no_slot) {
    SPL_ASSERT(dmas[dma.whole].pieces_unread > 0, "DMA ", dma.whole, " has no more pieces");
    if (--dmas[dma.whole].pieces_unread == 0) dma_read(DmaId{dma.whole}, out);
    return;
  }
  SPL_ASSERT(dma.blocks && dma.execution != no_slot, "nobody waits for DMA ", id);
  dma.blocks = false;
  out.add<Resume>(HerId{dma.execution}, uint32_t{0});
}

void Nic::Impl::dma_done(DmaId id, Actions& out) {
  Dma& dma = dmas[id.value];
  SPL_ASSERT(!dma.done, "DMA ", id, " done twice");
  if (dma.delivery != no_slot) {
    const uint32_t delivery = dma.delivery;
    dmas.give_back(id.value);
    return delivered(delivery, out);
  }
  if (dma.fetch != no_slot) return reply_landed(id, out);
  if (dma.whole != no_slot) {
    const DmaId whole{dma.whole};
    dmas.give_back(id.value);
    SPL_ASSERT(dmas[whole.value].pieces > 0, "DMA ", whole, " has no more pieces");
    if (--dmas[whole.value].pieces == 0) dma_done(whole, out);
    return;
  }
  const uint32_t slot = dma.message;
  Message& message = messages[slot];
  dma.done = true;
  buffer_release(dma.buffer_bytes);
  if (dma.execution != no_slot) {
    Execution& execution = executions[dma.execution];
    SPL_ASSERT(execution.dmas_open > 0, "HER ", dma.execution);
    --execution.dmas_open;
    if (dma.blocks || dma.waited) out.add<Resume>(HerId{dma.execution}, uint32_t{0});
    release_execution(dma.execution);
  }
  if (!dma.event) forget_dma(message, id.value);
  while (message.dma_first != no_slot) {
    const Dma& first = dmas[message.dma_first];
    if (!first.done) break;
    SPL_ASSERT(first.event, "DMA ", message.dma_first, " is done and was not forgotten");
    Event event = event_of(message, EventKind::dma);
    event.manipulated_bytes = first.length;
    event.remote_offset = first.offset;
    event.start = first.start;
    post_event(offer_of(message).queue, event, out);
    forget_dma(message, message.dma_first);
  }
  if (message.dmas_open == 0) advance(slot, out);
}

}  // namespace spinloom::nic
