// Data order - the size up to which drivers keep the order of bytes at one address: max_waw_ordered_size,
// max_war_ordered_size.
//
// Contract: puts and atomics of up to ordered_bytes_max bytes to one address land in the order in which they were sent.
//   A get of up to as many bytes reads all that was sent before it, and never bytes of a put that was sent after it. So
//   a driver that reads the bytes of such a short reply later than the NIC asks for them must keep a copy of the bytes.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>

#include "nic/portals/action.hpp"

namespace spinloom::portals {

inline constexpr uint64_t ordered_bytes_max = 1024;

[[nodiscard]] inline bool is_short_reply(const nic::Packet& packet) {
  return packet.operation == nic::Operation::reply && packet.message_length <= ordered_bytes_max;
}

}  // namespace spinloom::portals
