// Record port - another port, and a capture file of all that passes it, for Wireshark and tcpdump.
//
// Contract: record() gives a port that does what `inner` does, and writes each frame that it received or sent, in this
//   order, to a new file, which has all of them when the call returns. If the file can take no more, a warning is
//   logged, and the port goes on without a record. Tools of the kernel do not see what AF_XDP takes; this file shows
//   it.
// Threads: as FramePort. Time: frames have the host's clock (CLOCK_REALTIME), of the call that they passed in.
#pragma once

#include <string>

#include "ethernet/port/frame_port.hpp"

namespace spinloom::port {

[[nodiscard]] Result<PortPointer> record(PortPointer inner, const std::string& path);

}  // namespace spinloom::port
