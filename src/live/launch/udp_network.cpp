#include "live/launch/udp_network.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <bit>

namespace spinloom::live {

UdpNetwork network_of(uint32_t address) {
  UdpNetwork network{address};
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return network;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_netmask == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if (ntohl(reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr) != address) continue;
    const uint32_t mask = ntohl(reinterpret_cast<const sockaddr_in*>(one->ifa_netmask)->sin_addr.s_addr);
    network.bits = static_cast<uint32_t>(std::countl_one(mask));
    break;
  }
  freeifaddrs(list);
  return network;
}

}  // namespace spinloom::live
