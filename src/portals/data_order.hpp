// Data order - how far drivers keep the order of bytes at the same address: max_waw_ordered_size, max_war_ordered_size.
//
// Contract: puts of up to ordered_bytes_max land in their order, and a get of as much finds nothing of a put behind it:
//   whoever reads a short reply later than the NIC sends it keeps what was there.
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
