// Faults - the faults that a run makes on purpose, and their counts.
//
// In a run with frames, the faults of datagrams are those of frames.
// Threads: plain values. Time: none.
#pragma once

#include <array>
#include <cstdint>

namespace spinloom::torture {

enum class Fault : uint8_t {
  drop,          // a datagram is lost
  duplicate,     // a datagram comes twice
  reorder,       // a datagram comes late, behind others
  corrupt,       // a byte of a datagram changes
  buffer_full,   // a packet had to wait for room at its NIC, or a frame was dropped for lack of a slot
  flow_control,  // a portal table entry was disabled, or a collective call failed for lack of unexpected headers
  handler,       // a handler failed, faulted, looped, wrote where it may not, or returned an unknown code
  peer_dead,     // a rank stopped in the middle, or the program of the host of a frame NIC did
};
inline constexpr size_t fault_count = 8;

[[nodiscard]] constexpr const char* name_of(Fault fault) {
  switch (fault) {
    case Fault::drop: return "drop";
    case Fault::duplicate: return "duplicate";
    case Fault::reorder: return "reorder";
    case Fault::corrupt: return "corrupt";
    case Fault::buffer_full: return "buffer_full";
    case Fault::flow_control: return "flow_control";
    case Fault::handler: return "handler";
    case Fault::peer_dead: return "peer_dead";
  }
  return "unknown";
}

using FaultCounts = std::array<uint64_t, fault_count>;

// Returns the count of one kind of fault, for reading and for counting.
inline uint64_t& count_of(FaultCounts& counts, Fault fault) { return counts[static_cast<size_t>(fault)]; }

}  // namespace spinloom::torture
