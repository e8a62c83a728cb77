// Veth peer - the other end of a virtual Ethernet pair.
//
// Contract: veth_peer() gives the name of the other end of the interface with this index, if it is a veth whose other
//   end is in this network namespace; otherwise "". Threads: any. Time: host time, one question to the kernel
//   (rtnetlink).
#pragma once

#include <string>

namespace spinloom::port {

[[nodiscard]] std::string veth_peer(int index);

}  // namespace spinloom::port
