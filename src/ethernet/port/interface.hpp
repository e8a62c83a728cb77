// Interface - a network interface of this network namespace.
//
// Contract: find_interface() gives the interface of a name. The setters change the interface for everybody, and need
//   CAP_NET_ADMIN in its namespace.
// Invariants: (1) find_interface() never changes anything.
// Threads: one at a time for an interface. Time: host time; calls of the kernel that do not wait.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "nic/packet/address.hpp"

namespace spinloom::port {

struct Interface {
  std::string name;
  int index = 0;
  packet::MacAddress mac;
  size_t mtu = 0;
};

[[nodiscard]] Result<Interface> find_interface(const std::string& name);
[[nodiscard]] Result<int> flags_of(const std::string& name);  // IFF_UP and others
[[nodiscard]] Status set_flag(const std::string& name, int flag, bool on);
[[nodiscard]] Status bring_up(const std::string& name);
[[nodiscard]] Status set_address(const std::string& name, packet::Ipv4Address address, int prefix_bits);
[[nodiscard]] int receive_queues(const std::string& name);  // 1 if the driver does not say
[[nodiscard]] uint32_t transmit_drops(const std::string& name);  // frames, modulo 2^32; 0: unknown

// Tells a port that its interface has gone down or away. Each receive() that found nothing calls check(), which asks
// the kernel only every 16th time, because a port that is polled should cost few system calls.
class InterfaceEnd {
 public:
  [[nodiscard]] Status check(int socket, const std::string& name);

 private:
  uint32_t calls_ = 0;
};

// Returns the Error "not allowed to ...: run it as root, ..." for EPERM and EACCES, and the kernel's words for others.
[[nodiscard]] Error system_error(const std::string& what, int error);

}  // namespace spinloom::port
