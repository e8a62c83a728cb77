// Unpack - unpacks a message by the host's processor, and prices that work.
//
// Contract: unpack() copies a whole message into memory as MPITypes' memory-to-memory functions do, one leaf of the
//   normal form after another: a tight loop of 8, 4 or 2 byte elements if blocks have at most 64 B, and block, stride
//   and addresses allow it; otherwise a library copy for each block. count_blocks() counts, without copying, the blocks
//   in vectors and the listed blocks: a block of a vector is cheaper to find. unpack_work() is the same work as the
//   host model prices it.
// Threads: pure. Time: none; the caller announces the work to its port.
#pragma once

#include <cstdint>

#include "memory/layout/blob.hpp"
#include "portals/interface/port.hpp"
#include "portals/strategies/plan.hpp"

namespace spinloom::strategies {

[[nodiscard]] portals::HostWork::Blocks count_blocks(const layout::Blob& blob);

// `first` is the address of the first byte that the message touches.
void unpack(const Message& message, const uint8_t* packed, uint8_t* first);

inline constexpr int64_t host_line_bytes = 64;  // arrays begin on a cache line

// The work of unpacking the first `bytes` of this message. Its addresses belong to a space of its own, so that no run
// depends on where an allocator put things: the packed message lies at zero, the array behind it, both on a cache line.
// `message` must outlive the work.
[[nodiscard]] portals::HostWork unpack_work(const Message& message, portals::HostWork::Kind kind, int64_t bytes);
[[nodiscard]] inline portals::HostWork unpack_work(const Message& message, portals::HostWork::Kind kind) {
  return unpack_work(message, kind, message.bytes);
}

}  // namespace spinloom::strategies
