// Cell - one entry of a channel: a cache line with one item from the sender to the receiver.
//
// Contract: `kind` says what the other fields mean. `small` is a whole put of at most 16 B. `packet` refers to a
//   PacketRecord in the channel's bulk area, which the payload follows. `lent` refers to a PacketRecord whose payload
//   stays in the sender's memory until the receiver answers with `loan_return`. `heap` says that the sender has a heap
//   by now; the header of the sender's segment says where it is. `bye` is the last cell of a sender.
// Invariants: (1) `sequence` is written last; (2) a reader looks at nothing but `sequence` before it has copied the
//   cell, because the sender can write to it at any time, and every field may hold anything.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <type_traits>

#include "nic/portals/packet.hpp"

namespace spinloom::live {

enum class CellKind : uint8_t { none, small, packet, lent, loan_return, heap, bye };

inline constexpr uint32_t cell_bytes = 64;
inline constexpr uint32_t small_bytes = 16;

struct Cell {
  uint32_t sequence = 0;
  CellKind kind = CellKind::none;
  uint8_t ack_request = 0;  // small
  uint8_t length = 0;  // small
  uint8_t unused = 0;
  uint64_t message = 0;  // small: the message; for lent and loan_return: the number of the loan
  uint64_t match_bits = 0;  // small; for packet and lent: where the record is in the bulk area
  uint64_t remote_offset = 0;  // small; for packet: bytes of payload behind the record; for lent: the payload's address
  uint64_t hdr_data = 0;  // small; for lent: the payload's length
  uint32_t portal = 0;  // small
  uint32_t reserved = 0;
  uint8_t payload[small_bytes] = {};  // small
};
static_assert(sizeof(Cell) == cell_bytes && std::is_trivially_copyable_v<Cell>, "a cell is one cache line");

// A packet without its payload. It is the engine's own struct, because Segment checks that both ends have the same one.
using PacketRecord = nic::Packet;
static_assert(std::is_trivially_copyable_v<PacketRecord>, "packets are copied through shared memory");

}  // namespace spinloom::live
