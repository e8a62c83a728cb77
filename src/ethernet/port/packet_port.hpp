// Packet port - the frames of a network interface through an AF_PACKET socket: a ring that the kernel fills, and many
// frames a system call the other way.
//
// Contract: open_packet_port() takes an interface without IPv4 addresses as the wire of a NIC (silence.hpp,
//   claim_interface()). It receives the frames of all stations, but not its own. It fills in checksums that the sender
//   left to hardware, from the kernel's description of each frame (virtio-net headers). A frame that is still to be cut
//   (GSO) is counted as truncated, because no wire would carry it. VLAN tags are back in their frames.
// Threads: as FramePort. Time: host time; receive() makes no system call while frames wait.
#pragma once

#include <string>

#include "ethernet/port/frame_port.hpp"

namespace spinloom::port {

[[nodiscard]] Result<PortPointer> open_packet_port(const std::string& name);

}  // namespace spinloom::port
