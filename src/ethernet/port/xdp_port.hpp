// XDP port - the frames of a network interface through an AF_XDP socket: they never become packets of the kernel.
//
// Contract: open_xdp_port() takes an interface without IPv4 addresses, with one receive queue and with an MTU of at
//   most 3822 bytes as the wire of a NIC (silence.hpp, claim_interface()). All that comes in is given to the port or
//   dropped before the kernel sees it. Where the kernel or the driver refuses, it is an Error with the reason, and
//   open_packet_port() is the way to go. UDP and TCP checksums that a sender in another namespace left to hardware are
//   filled in (finish_checksum.hpp); what the sender keeps beside the frame is lost: it must not leave VLAN tags to
//   hardware (ethtool -K NAME txvlan off), nor cut late (tso off gso off).
// Threads: as FramePort. Time: host time; send() makes about one system call for each 32 frames. receive() makes one
//   only to push frames that have not left yet, and at every 16th call that finds nothing.
#pragma once

#include <string>

#include "ethernet/port/frame_port.hpp"

namespace spinloom::port {

[[nodiscard]] Result<PortPointer> open_xdp_port(const std::string& name);

}  // namespace spinloom::port
