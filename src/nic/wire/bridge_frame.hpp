// Bridge frame - what travels between two ranks that do not reach each other, through gateways: a header and a packet.
//
// Contract: append_frame() writes the header, the caller appends the body. read_frame() returns the header and the body
//   of such bytes; for other bytes it returns an Error that says why. Frames have no tag of their own: each link on the
//   way seals what it carries. `received` acknowledges, by class of packets: the source of this frame has taken every
//   frame of the target before this number.
// Invariants: (1) whatever the bytes are, read_frame() does not read outside of them.
// Threads: pure. Time: none.
//
//   offset 0 version | 1 kind | 2 class | 3 flags | 4 source | 8 target | 12 resume count | 16 sequence
//   24 received, two numbers | 40 body ...
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "nic/portals/ids.hpp"

namespace spinloom::wire {

enum class BridgeKind : uint8_t {
  packet,  // the body is a packet (packet_format.hpp)
  bye,  // comes behind the source's packets: the source leaves the job
  credit,  // carries nothing but `received` and `resume_count`
  source_unreachable,  // comes from a gateway, in the name of a source that cannot be reached any more
  hello,  // goes to a gateway or comes from one: from now on signs of life are wanted
  leave,  // goes to a gateway: the source takes nothing more
  leave_done  // answers `leave`: it comes from a gateway, which sends nothing more to the target
};

// The class of a frame. `sequence` and `received` count within a class, independently of the other one. Answers are a
// class of their own, so that they never wait for requests.
enum class BridgeClass : uint8_t { requests, answers };

struct BridgeHeader {
  BridgeKind kind = BridgeKind::packet;
  BridgeClass traffic_class = BridgeClass::requests;
  bool is_last_packet = false;  // the packet is the last one of its message
  nic::Rank source;
  nic::Rank target;
  // The number of times that the source has gone on with packets of the target that it had kept back.
  uint32_t resume_count = 0;
  uint64_t sequence = 0;
  std::array<uint64_t, 2> received{};
};

struct BridgeFrame {
  BridgeHeader header;
  std::span<const uint8_t> body;
};

inline constexpr size_t bridge_header_bytes = 40;

void append_frame(const BridgeHeader& header, std::vector<uint8_t>& out);
[[nodiscard]] Result<BridgeFrame> read_frame(std::span<const uint8_t> bytes);

}  // namespace spinloom::wire
