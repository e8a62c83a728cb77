// The port over a UDP socket.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "live/datagram_port.hpp"
#include "live/segment.hpp"

namespace spinloom::live {
namespace {

constexpr size_t batch = 32;
constexpr size_t longest = 65507;        // the longest UDP datagram
constexpr size_t ip_and_udp_bytes = 28;
constexpr size_t enough = 16 << 10;      // longer datagrams gain nothing on a loopback
constexpr int socket_buffer_bytes = 4 << 20;

sockaddr_in to_socket(const UdpAddress& address) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_addr.s_addr = htonl(address.address);
  out.sin_port = htons(address.port);
  return out;
}

UdpAddress from_socket(const sockaddr_in& given) { return {ntohl(given.sin_addr.s_addr), ntohs(given.sin_port)}; }

struct Interface {
  uint32_t address = INADDR_LOOPBACK;
  std::string name = "lo";
};

// The interface with this address, or any interface if `address` is 0.
Interface find_interface(uint32_t address) {
  Interface found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & IFF_UP) == 0) continue;
    const UdpAddress here = from_socket(*reinterpret_cast<const sockaddr_in*>(one->ifa_addr));
    const bool wanted = address == 0 ? (one->ifa_flags & IFF_LOOPBACK) == 0 : here.address == address;
    if (!wanted) continue;
    found = {here.address, one->ifa_name};
    break;
  }
  freeifaddrs(list);
  return found;
}

class UdpSocket final : public DatagramPort {
 public:
  UdpSocket(int file, const UdpAddress& address, size_t datagram_bytes)
      : file_(file), address_(address), datagram_bytes_(datagram_bytes), room_(batch * longest) {}
  ~UdpSocket() override { close(file_); }

  // Datagrams that the kernel does not accept are lost, as on any link.
  void send(std::span<const DatagramOut> datagrams) override {
    std::array<mmsghdr, batch> messages;
    std::array<sockaddr_in, batch> addresses;
    std::array<iovec, batch> bytes;
    for (size_t begin = 0; begin < datagrams.size();) {
      const size_t count = std::min(batch, datagrams.size() - begin);
      for (size_t i = 0; i < count; ++i) {
        const DatagramOut& one = datagrams[begin + i];
        addresses[i] = to_socket(one.to);
        bytes[i] = {const_cast<uint8_t*>(one.bytes.data()), one.bytes.size()};
        messages[i] = {};
        messages[i].msg_hdr.msg_name = &addresses[i];
        messages[i].msg_hdr.msg_namelen = sizeof addresses[i];
        messages[i].msg_hdr.msg_iov = &bytes[i];
        messages[i].msg_hdr.msg_iovlen = 1;
      }
      const int sent = sendmmsg(file_, messages.data(), static_cast<unsigned>(count), MSG_DONTWAIT);
      begin += sent > 0 ? static_cast<size_t>(sent) : 1;  // the first one was refused
    }
  }

  std::span<const DatagramIn> take() override {
    std::array<mmsghdr, batch> messages;
    std::array<sockaddr_in, batch> addresses;
    std::array<iovec, batch> bytes;
    for (size_t i = 0; i < batch; ++i) {
      bytes[i] = {room_.data() + i * longest, longest};
      messages[i] = {};
      messages[i].msg_hdr.msg_name = &addresses[i];
      messages[i].msg_hdr.msg_namelen = sizeof addresses[i];
      messages[i].msg_hdr.msg_iov = &bytes[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
    const int got = recvmmsg(file_, messages.data(), batch, MSG_DONTWAIT, nullptr);
    taken_.clear();
    for (int i = 0; i < got; ++i) {
      const auto index = static_cast<size_t>(i);
      taken_.push_back({from_socket(addresses[index]), {room_.data() + index * longest, messages[index].msg_len}});
    }
    return taken_;
  }

  bool has_some() const override {
    int waiting = 0;
    return ioctl(file_, FIONREAD, &waiting) == 0 && waiting > 0;
  }
  UdpAddress address() const override { return address_; }
  int descriptor() const override { return file_; }
  size_t datagram_bytes() const override { return datagram_bytes_; }

 private:
  int file_;
  UdpAddress address_;
  size_t datagram_bytes_;
  std::vector<uint8_t> room_;
  std::vector<DatagramIn> taken_;
};

}  // namespace

std::string print(const UdpAddress& address) {
  const auto byte = [&](int shift) { return address.address >> shift & 0xff; };
  return text(byte(24), ".", byte(16), ".", byte(8), ".", byte(0), ":", address.port);
}

Result<std::unique_ptr<DatagramPort>> open_udp(uint32_t address) {
  const Interface interface = find_interface(address);
  if (address != 0 && interface.address != address) {
    return fail(Code::environment, "no interface that is up has the address ", print({address, 0}));
  }
  const int file = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (file < 0) return fail(Code::environment, "UDP socket: ", trouble_of(errno));
  sockaddr_in here = to_socket({interface.address, 0});
  socklen_t length = sizeof here;
  if (bind(file, reinterpret_cast<const sockaddr*>(&here), length) != 0 ||
      getsockname(file, reinterpret_cast<sockaddr*>(&here), &length) != 0) {
    const int trouble = errno;
    close(file);
    return fail(Code::environment, "UDP socket at ", print({interface.address, 0}), ": ", std::strerror(trouble));
  }
  for (const int which : {SO_RCVBUF, SO_SNDBUF}) {
    setsockopt(file, SOL_SOCKET, which, &socket_buffer_bytes, sizeof socket_buffer_bytes);
  }
  ifreq request{};
  std::strncpy(request.ifr_name, interface.name.c_str(), sizeof request.ifr_name - 1);
  const size_t mtu = ioctl(file, SIOCGIFMTU, &request) == 0 ? static_cast<size_t>(request.ifr_mtu) : 1500;
  return std::unique_ptr<DatagramPort>(
      std::make_unique<UdpSocket>(file, from_socket(here), std::min(enough, mtu - ip_and_udp_bytes)));
}

}  // namespace spinloom::live
