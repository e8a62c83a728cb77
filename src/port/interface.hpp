// Interface - a network interface of this network namespace, and how it becomes the wire of a NIC.
//
// Contract: find() gives the interface of a name. The setters change the interface for everybody, and need
//   CAP_NET_ADMIN in its namespace. make_plain() turns off what makes frames on a virtual link other than those on a
//   wire: checksums that are left to hardware which does not exist (tx checksumming), frames longer than the MTU (TSO,
//   GSO, GRO, LRO) and VLAN tags beside the frame. What the other end of a veth pair leaves to hardware is turned off
//   there, too, if it is in this namespace; if it is in another one, whoever owns that does it, or the port mends it.
//   own() prepares an interface for a NIC that answers on it: see below. A setting that the kernel does not have, or
//   does not let us change, is left as it is, except where a sentence says otherwise.
// own(): an interface is the wire of one NIC. Its Silence holds an abstract socket whose name has the interface's index;
//   such names belong to the network namespace, and go with the process. The second NIC is refused.
// The kernel must not answer what the NIC answers. (1) An interface with an IPv4 address is refused: it is the
//   kernel's. (2) IPv6 is disabled on it, so the kernel does not speak of its own accord. (3) Everything that comes in is
//   dropped behind the taps of packet sockets, by a program of two instructions at the kernel's ingress hook (tcx, Linux
//   6.6), as long as the Silence lives, however the process ends. Where that is refused, as in user namespaces, (4) ARP
//   is turned off on it and IPv4 is not forwarded from it: then the kernel still takes what is meant for addresses that
//   it has on other interfaces of this namespace; in a namespace for the NIC there are none. (2) and (4) are not undone.
// Invariants: (1) find() never changes anything.
// Threads: one at a time for an interface. Time: host time; calls of the kernel that do not wait.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "packet/address.hpp"
#include "port/descriptor.hpp"

namespace spinloom::port {

struct Interface {
  std::string name;
  int index = 0;
  packet::MacAddress mac;
  size_t mtu = 0;
};

// What keeps other NICs away and the kernel from answering, and how.
struct Silence {
  Descriptor claim;
  Descriptor link;
  const char* how = "";
};

[[nodiscard]] Result<Interface> find(const std::string& name);
[[nodiscard]] Status bring_up(const std::string& name);
[[nodiscard]] Status set_address(const std::string& name, packet::Ipv4Address address, int prefix_bits);
[[nodiscard]] int receive_queues(const std::string& name);  // 1 if the driver does not say
[[nodiscard]] uint32_t dropped_on_the_way_out(const std::string& name);  // since it was made, modulo 2^32
void make_plain(const Interface& interface);

// `drops`: the port itself takes everything that comes in away from the kernel; then (3) and (4) are left out.
[[nodiscard]] Result<Silence> own(const Interface& interface, bool drops);

// Tells a port that its interface is gone. look() is for each receive() that found nothing. It asks the kernel every
// 16th time only, because a port that is polled should cost few system calls.
class InterfaceEnd {
 public:
  [[nodiscard]] Status look(int socket, const std::string& name);

 private:
  uint32_t looked_ = 0;
};

// "not allowed to ...: run it as root, ..." for EPERM and EACCES, and the kernel's words for others.
[[nodiscard]] Error refused(const std::string& what, int error);

}  // namespace spinloom::port
