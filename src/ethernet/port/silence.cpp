#include "ethernet/port/silence.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include "ethernet/port/bpf.hpp"
#include "ethernet/port/veth_peer.hpp"

namespace spinloom::port {

namespace {

// Says which process listens at an address, or "" if it cannot be found. Any user of this network namespace may ask.
std::string holder_of(const sockaddr_un& address, socklen_t bytes) {
  const Descriptor prober(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ucred holder{};
  socklen_t length = sizeof holder;
  if (connect(prober.number(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0) return "";
  if (getsockopt(prober.number(), SOL_SOCKET, SO_PEERCRED, &holder, &length) != 0) return "";
  return text(" (process ", holder.pid, " of user ", holder.uid, ")");
}

// Opens the socket that no other process, and no other port of this process, gets for this interface.
Result<Descriptor> claim_name(const Interface& interface) {
  Descriptor out(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = text("spinloom-wire-", interface.index);  // starts with a zero byte: an abstract name
  name.copy(address.sun_path + 1, sizeof(address.sun_path) - 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const bool bound = bind(out.number(), reinterpret_cast<const sockaddr*>(&address), length) == 0;
  if (bound && listen(out.number(), SOMAXCONN) == 0) return out;
  if (errno != EADDRINUSE) return system_error("claim " + interface.name, errno);
  return fail(Code::environment, "another NIC has the interface ", interface.name, holder_of(address, length),
              ": end that one, or name another (ss -xap src @", name, " shows its process)");
}

// Returns the IPv4 address that the kernel has on the interface; empty if there is none.
std::string address_of(const std::string& name) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return "";
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(all, freeifaddrs);
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || name != one->ifa_name) continue;
    sockaddr_in address{};
    std::memcpy(&address, one->ifa_addr, sizeof(address));
    return packet::to_text(packet::Ipv4Address{ntohl(address.sin_addr.s_addr)});
  }
  return "";
}

// Changes one interface, and records how to undo that. Nothing is undone on another interface that has got its name.
class Changes {
 public:
  Changes(std::string name, Undo& undo) : name_(std::move(name)), index_(if_nametoindex(name_.c_str())), undo_(undo) {}

  void turn_offloads_off() {
    const Features before = features();
    for (const uint32_t command : {ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO, ETHTOOL_STXCSUM})
      ethtool_value_of(command, 0);
    constexpr uint32_t beside_frames = ETH_FLAG_LRO | ETH_FLAG_TXVLAN | ETH_FLAG_RXVLAN;
    ethtool_value_of(ETHTOOL_SFLAGS, ethtool_value_of(ETHTOOL_GFLAGS, 0) & ~beside_frames);
    const Features after = features();
    FeatureChanges back{ETHTOOL_SFEATURES, after.size, {}};
    for (size_t i = 0; i < back.blocks.size(); ++i) {
      const uint32_t changed = before.blocks[i].requested ^ after.blocks[i].requested;
      back.blocks[i] = {changed & after.blocks[i].available, before.blocks[i].requested};
    }
    undo_later([name = name_, back]() mutable { (void)ethtool(name, back); });
  }

  void change_setting(const std::string& path, const std::string& value) {
    std::string before;
    if (!(std::ifstream(path) >> before) || before == value) return;
    std::ofstream(path) << value;
    undo_later([path, before] { std::ofstream(path) << before; });
  }

  Status raise_flag(int flag) {
    SPL_ASSIGN(const int before, flags_of(name_));
    if ((before & flag) != 0) return {};
    SPL_TRY(set_flag(name_, flag, true));
    undo_later([name = name_, flag] { (void)set_flag(name, flag, false); });
    return {};
  }

 private:
  // ethtool_gfeatures and ethtool_sfeatures with room for more features than any kernel has.
  template <uint32_t command, class Block>
  struct Blocks {
    uint32_t ethtool_command = command;
    uint32_t size = 8;
    std::array<Block, 8> blocks{};
  };
  using Features = Blocks<ETHTOOL_GFEATURES, ethtool_get_features_block>;
  using FeatureChanges = Blocks<ETHTOOL_SFEATURES, ethtool_set_features_block>;

  template <class Question>
  static bool ethtool(const std::string& name, Question& question) {
    const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{};
    name.copy(request.ifr_name, IFNAMSIZ - 1);
    request.ifr_data = reinterpret_cast<char*>(&question);
    return ioctl(socket.number(), SIOCETHTOOL, &request) == 0;
  }

  [[nodiscard]] Features features() const {
    Features out;
    return ethtool(name_, out) ? out : Features{};
  }

  uint32_t ethtool_value_of(uint32_t command, uint32_t value) const {
    ethtool_value setting{command, value};
    return ethtool(name_, setting) ? setting.data : 0;
  }

  void undo_later(std::function<void()> step) {
    undo_.add([name = name_, index = index_, step = std::move(step)] {
      if (if_nametoindex(name.c_str()) == index) step();
    });
  }

  std::string name_;
  uint32_t index_;
  Undo& undo_;
};

}  // namespace

Result<Silence> claim_interface(const Interface& interface, bool port_takes_all) {
  if (const std::string address = address_of(interface.name); !address.empty()) {
    return fail(Code::invalid, interface.name, " has the address ", address,
                ", so the kernel answers on it; a NIC takes an interface without addresses: ip address flush dev ",
                interface.name);
  }
  Silence out;
  SPL_ASSIGN(out.claim, claim_name(interface));
  Changes changes(interface.name, out.changes);
  changes.change_setting("/proc/sys/net/ipv6/conf/" + interface.name + "/disable_ipv6", "1");
  changes.turn_offloads_off();
  if (const std::string peer = veth_peer(interface.index); !peer.empty())
    Changes(peer, out.changes).turn_offloads_off();
  if (port_takes_all) {
    out.method = "all that comes is taken before the kernel";
  } else if (auto link = bpf_drop_ingress(interface.index)) {
    out.link = std::move(*link);
    out.method = "the kernel drops what comes";
  } else {
    changes.change_setting("/proc/sys/net/ipv4/conf/" + interface.name + "/forwarding", "0");
    SPL_TRY(changes.raise_flag(IFF_NOARP));
    out.method = "no address, no ARP";
  }
  SPL_TRY(bring_up(interface.name));
  return out;
}

}  // namespace spinloom::port
