#include "ethernet/port/interface.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "ethernet/port/descriptor.hpp"

namespace spinloom::port {

namespace {

Descriptor any_socket() { return Descriptor(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)); }

ifreq request_for(const std::string& name) {
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  return request;
}

std::string names_of_all() {
  std::string out;
  struct if_nameindex* const all = if_nameindex();
  for (const auto* one = all; one != nullptr && one->if_index != 0; ++one) {
    out += (out.empty() ? "" : ", ") + std::string(one->if_name);
  }
  if_freenameindex(all);
  return out;
}

}  // namespace

Status InterfaceEnd::check(int socket, const std::string& name) {
  if (calls_++ % 16 != 0) return {};
  int error = 0;
  socklen_t length = sizeof(error);
  getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length);
  if (error == 0) return {};
  return fail(Code::environment, name, " went down or away (", std::strerror(error),
              "): its peer's namespace may have ended");
}

Error system_error(const std::string& what, int error) {
  if (error == EPERM || error == EACCES) {
    return fail(Code::environment, "not allowed to ", what,
                ": run it as root, with CAP_NET_ADMIN and CAP_NET_RAW, or in a network namespace of your own "
                "(unshare --map-root-user --net)");
  }
  return fail(Code::environment, "cannot ", what, ": ", std::strerror(error));
}

Result<Interface> find_interface(const std::string& name) {
  if (name.empty() || name.size() >= IFNAMSIZ) {
    return fail(Code::invalid, "'", name, "' is no name of an interface: 1 to ", IFNAMSIZ - 1, " letters");
  }
  Interface out;
  out.name = name;
  out.index = static_cast<int>(if_nametoindex(name.c_str()));
  if (out.index == 0) {
    return fail(Code::environment, "there is no interface '", name,
                "' in this network namespace (there are: ", names_of_all(), "); a pair for trying: ip link add ", name,
                " type veth peer name host0");
  }
  const Descriptor socket = any_socket();
  ifreq request = request_for(name);
  if (ioctl(socket.number(), SIOCGIFHWADDR, &request) != 0) return system_error("read the address of " + name, errno);
  if (request.ifr_hwaddr.sa_family != ARPHRD_ETHER && request.ifr_hwaddr.sa_family != ARPHRD_LOOPBACK) {
    return fail(Code::unsupported, name, " is not an Ethernet interface (type ", request.ifr_hwaddr.sa_family, ")");
  }
  std::memcpy(out.mac.bytes.data(), request.ifr_hwaddr.sa_data, out.mac.bytes.size());
  if (ioctl(socket.number(), SIOCGIFMTU, &request) != 0) return system_error("read the MTU of " + name, errno);
  out.mtu = static_cast<size_t>(request.ifr_mtu);
  return out;
}

Result<int> flags_of(const std::string& name) {
  const Descriptor socket = any_socket();
  ifreq request = request_for(name);
  if (ioctl(socket.number(), SIOCGIFFLAGS, &request) != 0) return system_error("read the flags of " + name, errno);
  return int{request.ifr_flags};
}

Status set_flag(const std::string& name, int flag, bool on) {
  SPL_ASSIGN(const int flags, flags_of(name));
  if (((flags & flag) != 0) == on) return {};  // setting it again would need CAP_NET_ADMIN
  const Descriptor socket = any_socket();
  ifreq request = request_for(name);
  request.ifr_flags = static_cast<int16_t>(on ? flags | flag : flags & ~flag);
  if (ioctl(socket.number(), SIOCSIFFLAGS, &request) != 0) return system_error("change the flags of " + name, errno);
  return {};
}

Status bring_up(const std::string& name) { return set_flag(name, IFF_UP, true); }

Status set_address(const std::string& name, packet::Ipv4Address address, int prefix_bits) {
  const Descriptor socket = any_socket();
  ifreq request = request_for(name);
  const auto set = [&](uint64_t command, uint32_t value) {
    sockaddr_in setting{};
    setting.sin_family = AF_INET;
    setting.sin_addr.s_addr = htonl(value);
    std::memcpy(&request.ifr_addr, &setting, sizeof(setting));
    return ioctl(socket.number(), command, &request) == 0;
  };
  const uint32_t mask = prefix_bits == 0 ? 0 : ~uint32_t{0} << (32 - prefix_bits);
  if (set(SIOCSIFADDR, address.value) && set(SIOCSIFNETMASK, mask)) return {};
  return system_error(text("give ", name, " the address ", packet::to_text(address), "/", prefix_bits), errno);
}

int receive_queues(const std::string& name) {
  const Descriptor socket = any_socket();
  ifreq request = request_for(name);
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  request.ifr_data = reinterpret_cast<char*>(&channels);
  if (ioctl(socket.number(), SIOCETHTOOL, &request) != 0) return 1;
  return static_cast<int>(channels.combined_count + channels.rx_count);
}

uint32_t transmit_drops(const std::string& name) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return 0;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(all, freeifaddrs);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_PACKET || name != one->ifa_name) continue;
    return static_cast<const rtnl_link_stats*>(one->ifa_data)->tx_dropped;
  }
  return 0;
}

}  // namespace spinloom::port
