// TAP port - the frames of a TAP device: the kernel is the peer, as if a cable led from it to the NIC.
//
// Contract: open_tap_port() makes the device, or takes one that was made for this user (ip tuntap add), and brings it
//   up; a device that it made is gone with the port. `address` may be empty, or what the kernel's end has:
//   "10.0.0.1/24". The NIC has an address of its own, mac(): that of the device is the kernel's, and open_tap_port()
//   makes it the same each time, if the process may change it (CAP_NET_ADMIN). Frames are whole: the kernel computes
//   checksums and cuts at the MTU, because no offload is asked for.
// Threads: as FramePort. Time: host time; a system call for each frame.
#pragma once

#include <string>

#include "ethernet/port/frame_port.hpp"

namespace spinloom::port {

[[nodiscard]] Result<PortPointer> open_tap_port(const std::string& name, const std::string& address);

}  // namespace spinloom::port
