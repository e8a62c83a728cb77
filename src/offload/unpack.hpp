// Unpack - a message unpacked by the host's processor, and what that touches.
//
// Contract: unpack() walks the blob with a segment from the first to the last byte, as MPITypes does, and
//   copies; pieces() names the same pieces without copying, for cost models.
// Threads: pure. Time: none; the caller announces the work to its port.
#pragma once

#include <cstdint>
#include <cstring>

#include "offload/plan.hpp"
#include "spinloom/segment.h"

namespace spinloom::offload {

// visit(offset from the first touched byte, packed offset, bytes) in packed order.
template <class Visit>
void for_each_piece(const Message& message, Visit&& visit) {
  const layout::Blob& blob = message.blob;
  if (blob.narrow()) {
    spl_segment_narrow segment;
    spl_segment_init_narrow(&segment, blob.data());
    spl_segment_manipulate_narrow(
        &segment, blob.data(), 0, static_cast<uint32_t>(message.bytes),
        [](void* context, int32_t offset, uint32_t packed, uint32_t bytes) {
          (*static_cast<std::remove_reference_t<Visit>*>(context))(int64_t{offset}, uint64_t{packed}, uint64_t{bytes});
        },
        &visit);
  } else {
    spl_segment_wide segment;
    spl_segment_init_wide(&segment, blob.data());
    spl_segment_manipulate_wide(
        &segment, blob.data(), 0, static_cast<uint64_t>(message.bytes),
        [](void* context, int64_t offset, uint64_t packed, uint64_t bytes) {
          (*static_cast<std::remove_reference_t<Visit>*>(context))(offset, packed, bytes);
        },
        &visit);
  }
}

// first: the address of the first byte that the message touches.
inline uint64_t unpack(const Message& message, const uint8_t* packed, uint8_t* first) {
  uint64_t blocks = 0;
  for_each_piece(message, [&](int64_t offset, uint64_t at, uint64_t bytes) {
    std::memcpy(first + offset, packed + at, bytes);
    ++blocks;
  });
  return blocks;
}

}  // namespace spinloom::offload
