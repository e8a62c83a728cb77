// Streaming puts: one message whose bytes the host names region by region (SC'19 datatypes paper, section 3.1.1).
//
// A packet may span regions. It leaves when its last byte has been named; the last packet leaves with the end flag.
// The length is declared at the start, because the header carries it, and the target matches and completes by it.
#include <algorithm>

#include "nic/portals/initiator.hpp"

namespace spinloom::nic {
namespace {

Status check_region(const PutRegion& region, uint64_t memory_bytes) {
  if (region.offset <= memory_bytes && region.length <= memory_bytes - region.offset) return {};
  return fail(Code::invalid, "streaming put: a region of ", region.length, " B at offset ", region.offset,
              " is not inside its memory of ", memory_bytes, " B");
}

Status too_long(uint64_t named_bytes, const PutRegion& region, uint64_t length) {
  return fail(Code::invalid, "streaming put: a region of ", region.length, " B after ", named_bytes,
              " B goes beyond the message's declared length of ", length, " B");
}

}  // namespace

Status Initiator::stream(const StreamStart& start, Actions& out) {
  SPL_TRY(check(start.put));
  SPL_TRY(check_region(start.first, start.memory_bytes));
  if (start.first.length > start.put.length) return too_long(0, start.first, start.put.length);
  SPL_ASSIGN(uint32_t* slot, streams_.create(start.id));
  *slot = open_message(start.put);
  Outgoing& message = outgoing_[*slot];
  message.stream = std::make_unique<Stream>();
  message.stream->memory_bytes = start.memory_bytes;
  message.stream->named_bytes = start.first.length;
  if (start.first.length > 0) message.stream->regions.push(start.first);
  message.may_wait = true;
  ++waiting_headers_;
  outbound_.push(*slot);
  if (take_turn(*slot)) emit(out);
  return {};
}

Status Initiator::stream(const StreamAppend& append, Actions& out) {
  SPL_ASSIGN(const uint32_t* named_slot, streams_.get(append.id));
  const uint32_t slot = *named_slot;
  Outgoing& message = outgoing_[slot];
  SPL_ASSERT(message.stream != nullptr && !message.stream->ended, "stream ", append.id);
  Stream& stream = *message.stream;
  SPL_TRY(check_region(append.region, stream.memory_bytes));
  const uint64_t length = message.put.length;
  SPL_ASSERT(stream.named_bytes <= length, stream.named_bytes, " of ", length);
  if (append.region.length > length - stream.named_bytes) return too_long(stream.named_bytes, append.region, length);
  const uint64_t named_bytes = stream.named_bytes + append.region.length;
  if (append.end && named_bytes < length) {
    return fail(Code::invalid, "streaming put: it ends after ", named_bytes, " B of the declared ", length,
                " B; declare the length that the regions have");
  }
  stream.named_bytes = named_bytes;
  stream.ended = append.end;
  if (append.region.length > 0) stream.regions.push(append.region);
  if (append.end) streams_.remove(append.id);
  const bool is_complete = is_next_packet_complete(message, std::min(config_.transfer_bytes, length - message.emitted));
  if (is_complete && take_turn(slot)) emit(out);
  return {};
}

// True if the next packet, of `length` bytes, can be put together. The last packet waits for the end of the message.
bool Initiator::is_next_packet_complete(const Outgoing& message, uint64_t length) {
  const Stream& stream = *message.stream;
  if (stream.ended) return true;
  const uint64_t end = message.emitted + length;
  return end <= stream.named_bytes && end < message.put.length;
}

// Takes the regions, or parts of them, that make up the next packet.
std::vector<PayloadRef> Initiator::take_pieces(Outgoing& message, uint64_t length) {
  SPL_ASSERT(message.emitted + length <= message.stream->named_bytes, length, " B behind ", message.emitted);
  std::vector<PayloadRef> pieces;
  Fifo<PutRegion>& regions = message.stream->regions;
  while (length > 0) {
    PutRegion& region = regions.front();
    const uint64_t piece_bytes = std::min(length, region.length);
    pieces.push_back({PayloadRef::Space::local, message.put.local + region.offset, piece_bytes});
    region.offset += piece_bytes;
    region.length -= piece_bytes;
    length -= piece_bytes;
    if (region.length == 0) regions.pop();
  }
  return pieces;
}

}  // namespace spinloom::nic
