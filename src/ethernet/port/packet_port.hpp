// Packet port - the frames of a network interface through an AF_PACKET socket: a ring that the kernel fills, and many
// frames a system call the other way.
//
// Contract: open_packet_port() takes an interface without addresses as the wire of a NIC (interface.hpp, own()), all
//   stations' frames, and not its own. Checksums that the sender left to hardware are filled in, by what the kernel
//   says of each frame (virtio-net headers); a frame that is still to be cut (GSO) is counted as truncated, as nobody
//   on a wire would see it. VLAN tags are back in their frames.
// Threads: as FramePort. Time: host time; receive() makes no system call while frames wait.
#pragma once

#include <string>

#include "ethernet/port/frame_port.hpp"

namespace spinloom::port {

[[nodiscard]] Result<PortPointer> open_packet_port(const std::string& name);

}  // namespace spinloom::port
