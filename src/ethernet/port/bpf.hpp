// BPF - the two small programs that ports give to the kernel, and how they get there, without a library.
//
// Contract: bpf_drop_ingress() drops all that comes in at an interface, behind the taps of packet sockets (tcx, Linux
//   6.6). bpf_redirect_queue() gives what comes in at queue 0 of an interface to the AF_XDP socket, and drops what
//   comes in at other queues before the kernel sees it (Linux 5.9). Both hold as long as the returned descriptors are
//   open, however the process ends. The kernel lets only privileged processes load programs; in a user namespace it
//   refuses, which is an Error.
// Threads: any. Time: host time; nothing waits.
#pragma once

#include "base/result.hpp"
#include "ethernet/port/descriptor.hpp"

namespace spinloom::port {

[[nodiscard]] Result<Descriptor> bpf_drop_ingress(int interface_index);

struct XdpProgram {
  Descriptor sockets;  // a map from queues to AF_XDP sockets
  Descriptor link;
  bool in_driver = true;  // false: it runs in the kernel's general code, slower
};

[[nodiscard]] Result<XdpProgram> bpf_redirect_queue(int interface_index, int xdp_socket);

}  // namespace spinloom::port
