// The port over a UDP socket.
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "live/node/segment.hpp"
#include "live/udp/datagram_port.hpp"

namespace spinloom::live {
namespace {

constexpr size_t messages_per_call = 16;
constexpr size_t datagram_bytes_max = 65507;  // the longest UDP datagram, and the longest train of datagrams
constexpr size_t train_datagrams = 64;  // the most that a kernel takes (UDP_MAX_SEGMENTS before Linux 6.8)
constexpr size_t ip_and_udp_bytes = 28;
// Longer datagrams gain nothing on a loopback. The kernel keeps one of this length, with its bookkeeping, in a block of
// 16 KiB, and four of them make a train.
constexpr size_t datagram_bytes_wanted = 15 << 10;
constexpr int socket_buffer_bytes = 4 << 20;
#ifndef UDP_SEGMENT
constexpr int UDP_SEGMENT = 103;
#endif
#ifndef UDP_GRO
constexpr int UDP_GRO = 104;
#endif

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

// Returns the interface with this address. If `address` is 0, returns the first one that is not the loopback; a
// connected one comes before one that is not connected, such as the bridge of a container engine without containers.
// Returns the loopback if there is no such interface.
Interface find_interface(uint32_t address) {
  Interface found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & IFF_UP) == 0) continue;
    const UdpAddress here = from_socket(*reinterpret_cast<const sockaddr_in*>(one->ifa_addr));
    const bool wanted = address == 0 ? (one->ifa_flags & IFF_LOOPBACK) == 0 : here.address == address;
    if (!wanted) continue;
    const bool connected = (one->ifa_flags & IFF_RUNNING) != 0;
    if (found.address != INADDR_LOOPBACK && !connected) continue;
    found = {here.address, one->ifa_name};
    if (connected) break;
  }
  freeifaddrs(list);
  return found;
}

class UdpSocket final : public DatagramPort {
 public:
  UdpSocket(int file, const UdpAddress& address, size_t datagram_bytes, bool trains)
      : file_(file),
        address_(address),
        datagram_bytes_(datagram_bytes),
        trains_(trains),
        buffer_(std::make_unique_for_overwrite<uint8_t[]>(messages_per_call * datagram_bytes_max)) {
    for (size_t i = 0; i < messages_per_call; ++i) {
      in_.bytes[i] = {buffer_.get() + i * datagram_bytes_max, datagram_bytes_max};
      in_.messages[i].msg_hdr.msg_iov = &in_.bytes[i];
      in_.messages[i].msg_hdr.msg_iovlen = 1;
      in_.messages[i].msg_hdr.msg_name = &in_.addresses[i];
      in_.messages[i].msg_hdr.msg_control = in_.controls[i].bytes;
      reset_header(i);
    }
    int bytes = 0;
    socklen_t length = sizeof bytes;
    if (getsockopt(file_, SOL_SOCKET, SO_RCVBUF, &bytes, &length) != 0) return;
    constexpr size_t bookkeeping = 1024;  // the kernel's, for each datagram; the kernel also rounds up to powers of two
    receive_capacity_ = static_cast<size_t>(bytes) / (std::bit_ceil(datagram_bytes_) + bookkeeping);
  }
  ~UdpSocket() override { close(file_); }

  // Datagrams that the kernel does not accept are lost, as on any link.
  void send(std::span<const DatagramOut> datagrams) override {
    while (!datagrams.empty()) {
      const size_t count = pack(datagrams);
      const int sent = out_.count == 1 ? static_cast<int>(sendmsg(file_, &out_.messages[0].msg_hdr, MSG_DONTWAIT) >= 0)
                                       : sendmmsg(file_, out_.messages.data(), out_.count, MSG_DONTWAIT);
      if (sent == static_cast<int>(out_.count)) {
        datagrams = datagrams.subspan(count);
        continue;
      }
      for (int i = 0; i < sent; ++i) datagrams = datagrams.subspan(out_.lengths[static_cast<size_t>(i)]);
      if (sent > 0) continue;
      // A train that the route's MTU forbids, or that the device cannot take apart, leaves as single datagrams.
      const bool unfit = out_.lengths[0] > 1 && (errno == EINVAL || errno == EMSGSIZE || errno == EIO);
      if (unfit) trains_ = false;
      if (!unfit) datagrams = datagrams.subspan(out_.lengths[0]);
    }
  }

  std::span<const DatagramIn> receive() override {
    const int got = recvmmsg(file_, in_.messages.data(), messages_per_call, MSG_DONTWAIT, nullptr);
    taken_.clear();
    was_full_ = got == static_cast<int>(messages_per_call);
    for (size_t i = 0; static_cast<int>(i) < got; ++i) {
      const UdpAddress from = from_socket(in_.addresses[i]);
      std::span<const uint8_t> bytes(buffer_.get() + i * datagram_bytes_max, in_.messages[i].msg_len);
      const size_t each = datagram_length(in_.messages[i].msg_hdr, bytes.size());
      while (bytes.size() > each) {
        taken_.push_back({from, bytes.first(each)});
        bytes = bytes.subspan(each);
      }
      taken_.push_back({from, bytes});
      reset_header(i);
    }
    return taken_;
  }
  bool was_full() const override { return was_full_; }
  bool has_datagrams() const override {
    int waiting = 0;
    return ioctl(file_, FIONREAD, &waiting) == 0 && waiting > 0;
  }
  UdpAddress address() const override { return address_; }
  int descriptor() const override { return file_; }
  size_t datagram_bytes() const override { return datagram_bytes_; }

  size_t receive_capacity() const override { return receive_capacity_; }

 private:
  struct alignas(cmsghdr) Control {
    uint8_t bytes[CMSG_SPACE(sizeof(int))];
  };

  void reset_header(size_t index) {
    in_.messages[index].msg_hdr.msg_namelen = sizeof in_.addresses[index];
    in_.messages[index].msg_hdr.msg_controllen = sizeof in_.controls[index].bytes;
  }

  // The length of each datagram but the last in what one message has brought.
  static size_t datagram_length(const msghdr& header, size_t all) {
    for (cmsghdr* one = CMSG_FIRSTHDR(&header); one != nullptr; one = CMSG_NXTHDR(const_cast<msghdr*>(&header), one)) {
      if (one->cmsg_level != SOL_UDP || one->cmsg_type != UDP_GRO) continue;
      int length = 0;
      std::memcpy(&length, CMSG_DATA(one), sizeof length);
      if (length > 0) return static_cast<size_t>(length);
    }
    return std::max<size_t>(all, 1);
  }

  // Returns how many of the first datagrams make a train: they go to one address and have one length, but the last may
  // be shorter.
  [[nodiscard]] size_t train_length(std::span<const DatagramOut> datagrams) const {
    const size_t each = datagrams[0].size();
    size_t bytes = each;
    size_t count = 1;
    if (!trains_) return count;
    while (count < std::min(datagrams.size(), train_datagrams) && datagrams[count].to == datagrams[0].to) {
      const size_t next = datagrams[count].size();
      if (next > each || bytes + next > datagram_bytes_max) break;
      bytes += next;
      ++count;
      if (next < each) break;
    }
    return count;
  }

  // Prepares out_ for the first datagrams and returns how many these are.
  size_t pack(std::span<const DatagramOut> datagrams) {
    out_.count = 0;
    out_.bytes.clear();
    out_.bytes.reserve(messages_per_call * train_datagrams * 3);  // the pointers stay valid then
    size_t packed = 0;
    for (; out_.count < messages_per_call && packed < datagrams.size(); ++out_.count) {
      const size_t index = out_.count;
      const size_t count = train_length(datagrams.subspan(packed));
      const size_t first = out_.bytes.size();
      for (const DatagramOut& one : datagrams.subspan(packed, count)) {
        for (const auto& piece : one.pieces) {
          if (!piece.empty()) out_.bytes.push_back({const_cast<uint8_t*>(piece.data()), piece.size()});
        }
      }
      out_.lengths[index] = count;
      out_.addresses[index] = to_socket(datagrams[packed].to);
      msghdr& header = out_.messages[index].msg_hdr;
      header = {};
      header.msg_name = &out_.addresses[index];
      header.msg_namelen = sizeof out_.addresses[index];
      header.msg_iov = &out_.bytes[first];
      header.msg_iovlen = out_.bytes.size() - first;
      if (count > 1) {
        header.msg_control = out_.controls[index].bytes;
        header.msg_controllen = CMSG_SPACE(sizeof(uint16_t));
        cmsghdr* const control = CMSG_FIRSTHDR(&header);
        control->cmsg_level = SOL_UDP;
        control->cmsg_type = UDP_SEGMENT;
        control->cmsg_len = CMSG_LEN(sizeof(uint16_t));
        const auto each = static_cast<uint16_t>(datagrams[packed].size());
        std::memcpy(CMSG_DATA(control), &each, sizeof each);
      }
      packed += count;
    }
    return packed;
  }

  struct Messages {
    std::array<mmsghdr, messages_per_call> messages{};
    std::array<sockaddr_in, messages_per_call> addresses{};
    std::array<Control, messages_per_call> controls{};
  };
  struct Incoming : Messages {
    std::array<iovec, messages_per_call> bytes{};
  };
  struct Outgoing : Messages {
    std::vector<iovec> bytes;
    std::array<size_t, messages_per_call> lengths{};  // number of datagrams in each message
    unsigned count = 0;
  };

  int file_;
  UdpAddress address_;
  size_t datagram_bytes_;
  bool trains_;  // the kernel takes several datagrams at once
  size_t receive_capacity_ = 0;
  bool was_full_ = false;
  std::unique_ptr<uint8_t[]> buffer_;
  Incoming in_;
  Outgoing out_;
  std::vector<DatagramIn> taken_;
};

}  // namespace

std::string print(const UdpAddress& address) {
  const auto byte = [&](int shift) { return address.address >> shift & 0xff; };
  return text(byte(24), ".", byte(16), ".", byte(8), ".", byte(0), ":", address.port);
}

std::vector<uint8_t> DatagramOut::joined() const {
  std::vector<uint8_t> bytes;
  for (const auto& piece : pieces) bytes.insert(bytes.end(), piece.begin(), piece.end());
  return bytes;
}

Result<std::unique_ptr<DatagramPort>> open_udp(uint32_t address, bool trains) {
  const Interface interface = find_interface(address);
  if (address != 0 && interface.address != address) {
    std::string wanted = print({address, 0});
    wanted.resize(wanted.rfind(':'));
    return fail(Code::environment, "no interface that is up has the address ", wanted, " (SPINLOOM_UDP_ADDRESS)");
  }
  const int file = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (file < 0) return fail(Code::environment, "UDP socket: ", error_text(errno));
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
  // Routers take apart what is too long for a part of the path. The path's MTU could be learned instead, but only where
  // no firewall drops the routers' notices; where one does, all long datagrams would be lost for ever.
  constexpr int apart = IP_PMTUDISC_DONT, off = 0, on = 1;
  setsockopt(file, IPPROTO_IP, IP_MTU_DISCOVER, &apart, sizeof apart);
  // A kernel that does not know UDP_SEGMENT would ignore it in a message, and send a train as one datagram.
  const bool can_send = trains && setsockopt(file, SOL_UDP, UDP_SEGMENT, &off, sizeof off) == 0;
  if (trains) setsockopt(file, SOL_UDP, UDP_GRO, &on, sizeof on);
  ifreq request{};
  std::strncpy(request.ifr_name, interface.name.c_str(), sizeof request.ifr_name - 1);
  const size_t mtu = ioctl(file, SIOCGIFMTU, &request) == 0 ? static_cast<size_t>(request.ifr_mtu) : 1500;
  return std::unique_ptr<DatagramPort>(std::make_unique<UdpSocket>(
      file, from_socket(here), std::min(datagram_bytes_wanted, mtu - ip_and_udp_bytes), can_send));
}

}  // namespace spinloom::live
