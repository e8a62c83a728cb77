// Open - a FramePort by its text, as users write it.
//
//   pcap:IN[,OUT]        a capture file in and a new one out; without IN no frame comes, without OUT none is kept
//   replay:IN,TIMES[,OUT]  the frames of a file again and again, as fast as they are asked for
//   tap:NAME[,ADDRESS/BITS]  a TAP device; the kernel's end gets the address
//   packet:INTERFACE     an interface without IPv4 addresses, by AF_PACKET
//   xdp:INTERFACE        the same by AF_XDP
//   record:FILE,PORT     opens PORT, and writes all frames that pass it to the new capture file FILE
//
// Contract: a text of another form is an Error that lists these; a wrong part of one of them is an Error that names it.
//   Ports of files need no privilege; the others say in their Errors which privilege would help. Names of files have no
//   commas.
// Threads: any. Time: host time.
#pragma once

#include <string_view>

#include "ethernet/port/frame_port.hpp"

namespace spinloom::port {

[[nodiscard]] Result<PortPointer> open_port(std::string_view text);

}  // namespace spinloom::port
