// Silence - what makes an interface the wire of one NIC, on which the kernel keeps quiet.
//
// Contract: claim_interface() prepares an interface for a NIC that answers on it, as long as the Silence lives. It
//   needs CAP_NET_ADMIN. The interface is the wire of one NIC: a second one is refused, because an abstract socket with
//   the interface's index in its name exists. Such names belong to the network namespace, and go with the process.
// The Silence turns off all that makes frames on a virtual link differ from frames on a wire: checksums that are left
// to hardware which does not exist (tx checksumming), frames longer than the MTU (TSO, GSO, GRO, LRO) and VLAN tags
// beside the frame. It also turns off what the other end of a veth pair leaves to hardware, if that end is in this
// namespace. If it is in another one, the owner of that end does so, or the port mends checksums. A setting that the
// kernel does not have, or does not let us change, stays as it is. The kernel must not answer frames that the NIC
// answers. (1) An interface with an IPv4 address is refused: it is the kernel's.
//   (2) IPv6 is disabled on it, so the kernel does not speak of its own accord. (3) Everything that comes in is dropped
//   behind the taps of packet sockets, by a program of two instructions at the kernel's ingress hook (tcx, Linux 6.6),
//   however the process ends. Where that is refused, as in user namespaces, (4) ARP is turned off on it and IPv4 is not
//   forwarded from it. Then the kernel still takes frames for addresses that it has on other interfaces of this
//   namespace; in a namespace for the NIC there are none.
// Invariants: (1) what was changed is put back when the Silence ends, unless the interface has gone, another one has
//   got its name, or the process is killed; the interface stays up. Of two NICs at both ends of a pair, the first that
//   ends puts back both ends.
// Threads: one at a time for an interface. Time: host time; calls of the kernel that do not wait.
#pragma once

#include "ethernet/port/descriptor.hpp"
#include "ethernet/port/interface.hpp"
#include "ethernet/port/undo.hpp"

namespace spinloom::port {

struct Silence {
  Descriptor claim;
  Undo changes;
  Descriptor link;
  const char* method = "";  // the way in which the kernel is kept quiet, in words
};

// If `port_takes_all` is set, the port itself takes everything that comes in away from the kernel; (3) and (4) are left
// out.
[[nodiscard]] Result<Silence> claim_interface(const Interface& interface, bool port_takes_all);

}  // namespace spinloom::port
