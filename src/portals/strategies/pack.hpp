// Pack - packs a message by the host's processor, and prices host work for packing and for posting calls.
//
// Contract: pack() copies a whole message from memory into a buffer. pack_work() is that work as the host model
//   prices it: MPITypes' loops (unpack.hpp), reading memory and writing the buffer. post_work() is the cost of a call
//   that the host posts after walking over `walked_blocks` blocks to find its arguments.
// Threads: pure. Time: none; the caller announces the work to its port.
#pragma once

#include <cstdint>
#include <span>

#include "portals/interface/port.hpp"
#include "portals/strategies/plan.hpp"

namespace spinloom::strategies {

// `first` is the address of the first byte that the message touches.
[[nodiscard]] Status pack(const Message& message, const uint8_t* first, std::span<uint8_t> packed);

// Touches the same addresses as unpack_work(). `message` must outlive the work.
[[nodiscard]] portals::HostWork pack_work(const Message& message);

[[nodiscard]] portals::HostWork post_work(uint64_t walked_blocks);

}  // namespace spinloom::strategies
