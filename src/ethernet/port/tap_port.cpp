#include "ethernet/port/tap_port.hpp"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <vector>

#include "ethernet/port/descriptor.hpp"
#include "ethernet/port/interface.hpp"

namespace spinloom::port {

namespace {

constexpr size_t frames_per_call = 64;

class TapPort final : public FramePort {
 public:
  TapPort(Descriptor device, const Interface& interface)
      : device_(std::move(device)),
        interface_(interface),
        slot_bytes_(frame_bytes_max() + 1),
        buffer_(frames_per_call * slot_bytes_),
        dropped_before_(transmit_drops(interface.name)) {}

  Result<size_t> receive(std::span<Bytes> batch) override {
    size_t count = 0;
    while (count < std::min(batch.size(), frames_per_call)) {
      uint8_t* const slot = buffer_.data() + count * slot_bytes_;
      const ssize_t length = read(device_.number(), slot, slot_bytes_);
      if (length < 0 && errno == EINTR) continue;
      if (length < 0 && errno == EAGAIN) break;
      if (length < 0) {
        if (count > 0) break;  // returns the frames that came; the next call reports the error
        return device_error();
      }
      if (static_cast<size_t>(length) == slot_bytes_) {
        ++counters_.truncated;
        continue;
      }
      batch[count++] = {slot, static_cast<size_t>(length)};
    }
    counters_.received += count;
    return count;
  }

  Result<size_t> send(std::span<const Bytes> frames) override {
    SPL_TRY(check_lengths(frames));
    size_t count = 0;
    while (count < frames.size()) {
      const ssize_t length = write(device_.number(), frames[count].data(), frames[count].size());
      if (length < 0 && errno == EINTR) continue;
      if (length < 0 && errno == EAGAIN) break;
      if (length < 0) {
        if (count > 0) break;
        return device_error();
      }
      ++count;
    }
    counters_.sent += count;
    return count;
  }

  packet::MacAddress mac() const override { return mac_for("tap:" + interface_.name); }
  size_t mtu() const override { return interface_.mtu; }
  Counters counters() override {
    counters_.dropped = uint32_t{transmit_drops(interface_.name) - dropped_before_};
    return counters_;
  }
  int descriptor() const override { return device_.number(); }
  std::string description() const override {
    return text("tap:", interface_.name, " (", packet::to_text(mac()), ", MTU ", interface_.mtu, ")");
  }

 private:
  Error device_error() const {
    return errno == EIO ? fail(Code::environment, interface_.name, " is down: ip link set ", interface_.name, " up")
                        : system_error("use " + description() + " any more", errno);
  }

  Descriptor device_;
  Interface interface_;
  size_t slot_bytes_;
  std::vector<uint8_t> buffer_;
  uint32_t dropped_before_;  // frames that the device dropped before this port took it
  Counters counters_;
};

Status set_address_text(const std::string& name, const std::string& address) {
  const size_t slash = address.find('/');
  SPL_ASSIGN(const packet::Ipv4Address ipv4, packet::parse_ipv4(address.substr(0, slash)));
  int bits = 32;
  if (slash != std::string::npos) {
    const char* const end = address.data() + address.size();
    const auto [at, problem] = std::from_chars(address.data() + slash + 1, end, bits);
    if (problem != std::errc() || at != end || bits < 0 || bits > 32) {
      return fail(Code::invalid, "'", address, "' has no prefix of 0 to 32 bits; write 10.0.0.1/24");
    }
  }
  return set_address(name, ipv4, bits);
}

// Gives the kernel's end the same address each time, so that a peer that has asked for it before still reaches it. A
// device keeps its own address if this process may not change it (without CAP_NET_ADMIN).
void set_own_address(const std::string& name) {
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
  packet::store_mac(reinterpret_cast<uint8_t*>(request.ifr_hwaddr.sa_data), mac_for("kernel behind tap:" + name));
  if (socket) (void)ioctl(socket.number(), SIOCSIFHWADDR, &request);
}

}  // namespace

Result<PortPointer> open_tap_port(const std::string& name, const std::string& address) {
  if (name.empty() || name.size() >= IFNAMSIZ) {
    return fail(Code::invalid, "'", name, "' is no name of a TAP device: 1 to ", IFNAMSIZ - 1, " letters");
  }
  Descriptor device(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!device) {
    if (errno == EACCES || errno == EPERM) {
      return fail(Code::environment,
                  "not allowed to open /dev/net/tun: run it as root, or let everybody open it, as most "
                  "distributions do (chmod 666 /dev/net/tun)");
    }
    return errno == ENOENT ? fail(Code::environment,
                                  "there is no /dev/net/tun here: modprobe tun, or give it to the "
                                  "container (--device /dev/net/tun)")
                           : system_error("open /dev/net/tun", errno);
  }
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  if (ioctl(device.number(), TUNSETIFF, &request) != 0) {
    return errno == EBUSY ? fail(Code::environment, "the TAP device ", name, " is used by another process")
                          : system_error("make the TAP device " + name, errno);
  }
  set_own_address(name);
  if (!address.empty()) SPL_TRY(set_address_text(name, address));
  SPL_TRY(bring_up(name));
  SPL_ASSIGN(const Interface interface, find_interface(name));
  return PortPointer(std::make_unique<TapPort>(std::move(device), interface));
}

}  // namespace spinloom::port
