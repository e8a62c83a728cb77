// Describe - one line about a frame for people to read, as network tracers print them.
//
// Contract: describe() takes any bytes. It says how far the frame can be understood, what is wrong with it where it
//   cannot, and its length: "10.0.0.1:4000 > 10.0.0.2:9330 UDP 64 bytes". Addresses are numbers. Ethernet addresses are
//   printed where there are no IPv4 addresses.
// Threads: pure. Time: none; it allocates, so it is for traces and messages, not for each frame.
#pragma once

#include <string>

#include "nic/packet/read.hpp"

namespace spinloom::packet {

[[nodiscard]] std::string describe(Bytes frame);

}  // namespace spinloom::packet
