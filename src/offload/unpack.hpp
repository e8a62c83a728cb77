// Unpack - a message unpacked by the host's processor, and what that touches.
//
// Contract: unpack() walks the blob with a segment from the first to the last byte, as MPITypes does, and
//   copies; pieces() names the same pieces without copying, for cost models.
// Threads: pure. Time: none; the caller announces the work to its port.
#pragma once

#include <cstdint>
#include <cstring>

#include "offload/pieces.hpp"
#include "offload/plan.hpp"
#include "portals/port.hpp"

namespace spinloom::offload {

// first: the address of the first byte that the message touches.
inline uint64_t unpack(const Message& message, const uint8_t* packed, uint8_t* first) {
  uint64_t blocks = 0;
  for_each_piece(message.blob, message.bytes, [&](int64_t offset, uint64_t at, uint64_t bytes) {
    std::memcpy(first + offset, packed + at, bytes);
    ++blocks;
  });
  return blocks;
}

inline constexpr int64_t host_line_bytes = 64;  // arrays begin on a cache line

// The work of unpacking this message in `blocks` pieces. Touched addresses are of a space of its own, so that no run
// depends on where an allocator put things: the packed message at zero, the array behind it, both on a cache
// line. `message` must outlive the work.
inline portals::HostWork unpack_work(const Message& message, portals::HostWork::Kind kind, uint64_t blocks) {
  portals::HostWork work;
  work.kind = kind;
  work.blocks = blocks;
  work.bytes = static_cast<uint64_t>(message.bytes);
  const int64_t packed_lines = div_ceil(message.bytes, host_line_bytes);
  const int64_t into_line = ((message.reach.first % host_line_bytes) + host_line_bytes) % host_line_bytes;
  const int64_t array = packed_lines * host_line_bytes + into_line;
  work.touches = [&message, array](const portals::HostWork::Touch& touch) {
    for_each_piece(message.blob, message.bytes, [&](int64_t offset, uint64_t at, uint64_t bytes) {
      touch(at, bytes, false);
      touch(static_cast<uint64_t>(array + offset), bytes, true);
    });
  };
  return work;
}

}  // namespace spinloom::offload
