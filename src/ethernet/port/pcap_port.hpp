// Pcap port - capture files as a FramePort: what stands in one comes in, what is sent goes into a new one.
//
// Contract: open_pcap_port() reads `in` and makes `out`; either may be empty: then nothing comes, or what is sent is
//   only counted. open_replay_port() keeps the frames of `in` in memory and gives them `times` times, as fast as they
//   are asked for; nothing of the file is read during receive(). Records of `out` have the time of the last frame
//   received, or that of set_time_ns(), so that the same input gives the same bytes. Where there is an `out`, all
//   frames of one receive() have the same time: answers that are sent before the next receive() have the times of their
//   requests. `out` is removed again with a port that was never asked for frames and never sent one: a start that fails
//   leaves nothing. A frame longer than 9018 bytes (MTU 9000, and a VLAN tag), or shorter than an Ethernet header, is
//   counted as truncated.
// Threads: as FramePort. Time: none.
#pragma once

#include <string>

#include "ethernet/port/frame_port.hpp"

namespace spinloom::port {

[[nodiscard]] Result<PortPointer> open_pcap_port(const std::string& in, const std::string& out);
[[nodiscard]] Result<PortPointer> open_replay_port(const std::string& in, uint64_t times, const std::string& out);

}  // namespace spinloom::port
