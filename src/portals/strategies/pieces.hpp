// Pieces - the contiguous runs in which a segment unpacks a message, as handlers and host do.
//
// Contract: the pieces are those of the blob's walk from the first to the last byte. Neighbours that touch across a
//   loop's iterations are not joined, so there may be more pieces than blocks of the type map.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <type_traits>

#include "memory/layout/blob.hpp"
#include "spinloom/segment.h"

namespace spinloom::strategies {

// Calls visit(offset from the first touched byte, packed offset, bytes) in packed order.
template <class Visit>
void for_each_piece(const layout::Blob& blob, int64_t message_bytes, Visit&& visit) {
  if (blob.is_narrow()) {
    spl_segment_narrow segment;
    spl_segment_init_narrow(&segment, blob.data());
    spl_segment_manipulate_narrow(
        &segment, blob.data(), 0, static_cast<uint32_t>(message_bytes),
        [](void* context, int32_t offset, uint32_t packed, uint32_t bytes) {
          (*static_cast<std::remove_reference_t<Visit>*>(context))(int64_t{offset}, uint64_t{packed}, uint64_t{bytes});
        },
        &visit);
  } else {
    spl_segment_wide segment;
    spl_segment_init_wide(&segment, blob.data());
    spl_segment_manipulate_wide(
        &segment, blob.data(), 0, static_cast<uint64_t>(message_bytes),
        [](void* context, int64_t offset, uint64_t packed, uint64_t bytes) {
          (*static_cast<std::remove_reference_t<Visit>*>(context))(offset, packed, bytes);
        },
        &visit);
  }
}

// The number of pieces of a message, and of the writes that it takes: each packet boundary inside a piece adds a write.
struct PieceCount {
  int64_t pieces = 0;
  int64_t writes = 0;
};

inline PieceCount count_pieces(const layout::Blob& blob, int64_t message_bytes, int64_t packet_bytes) {
  PieceCount count;
  for_each_piece(blob, message_bytes, [&](int64_t, uint64_t at, uint64_t bytes) {
    const auto packet = static_cast<uint64_t>(packet_bytes);
    ++count.pieces;
    count.writes += 1 + static_cast<int64_t>((at + bytes - 1) / packet - at / packet);
  });
  return count;
}

}  // namespace spinloom::strategies
