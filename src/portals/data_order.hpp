// Data order - how far drivers keep the order of bytes at the same address: max_waw_ordered_size, max_war_ordered_size.
//
// Contract: puts of up to ordered_bytes_max land in the order in which they were sent, and a get of up to as
//   much never reads bytes of a put that was sent after it. A driver that reads the bytes of such a short reply later
//   than the NIC asked for it must therefore keep a copy of them.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>

#include "nic/action.hpp"

namespace spinloom::portals {

inline constexpr uint64_t ordered_bytes_max = 1024;

[[nodiscard]] inline bool is_short_reply(const nic::Packet& packet) {
  return packet.operation == nic::Operation::reply && packet.message_length <= ordered_bytes_max;
}

}  // namespace spinloom::portals
