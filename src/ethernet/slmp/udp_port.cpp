#include "ethernet/slmp/udp_port.hpp"

#include <arpa/inet.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace spinloom::slmp {
namespace {

constexpr int buffer_bytes = 4 << 20;  // the system gives what it allows

std::string name_of_address(const sockaddr_in& address) {
  char host[INET_ADDRSTRLEN] = "?";
  inet_ntop(AF_INET, &address.sin_addr, host, sizeof(host));
  return text(host, ":", ntohs(address.sin_port));
}

Error system_error(const std::string& what) { return fail(Code::environment, what, ": ", std::strerror(errno)); }

timespec as_timespec(Time time) {
  const int64_t ns = (std::max<int64_t>(0, time.ps) + 999) / 1000;
  return {ns / 1'000'000'000, ns % 1'000'000'000};
}

// The system reads these bytes and addresses, and changes none of them.
void write_parts(const Datagram& datagram, iovec* parts) {
  parts[0] = {const_cast<uint8_t*>(datagram.header.data()), datagram.header.size()};
  parts[1] = {const_cast<uint8_t*>(datagram.payload.data()), datagram.payload.size()};
}

void write_target(const Datagram& datagram, msghdr& message) {
  if (datagram.to == nullptr) return;
  message.msg_name = const_cast<sockaddr_in*>(datagram.to);
  message.msg_namelen = sizeof(*datagram.to);
}

bool same_target(const sockaddr_in* one, const sockaddr_in* other) {
  return one == other || (one != nullptr && other != nullptr && one->sin_port == other->sin_port &&
                          one->sin_addr.s_addr == other->sin_addr.s_addr);
}

// Returns how many of the first datagrams may travel as one: they go to one target and are equally long, but the last
// may be shorter.
size_t run_length(std::span<const Datagram> datagrams) {
  constexpr size_t together_bytes_max = 65'000;  // a little less than UDP's 65507
  if (datagrams.empty() || datagrams.front().bytes() == 0) return 0;
  const size_t bytes = datagrams.front().bytes();
  const size_t most = std::min({datagrams.size(), UdpPort::batch, together_bytes_max / bytes});
  size_t run = 1;
  while (run < most && same_target(datagrams[run].to, datagrams.front().to) && datagrams[run].bytes() == bytes) ++run;
  const bool shorter =
      run < most && same_target(datagrams[run].to, datagrams.front().to) && datagrams[run].bytes() < bytes;
  return shorter ? run + 1 : run;
}

}  // namespace

UdpPort::~UdpPort() {
  if (file_ >= 0) close(file_);
}

Status UdpPort::open() {
  file_ = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (file_ < 0) return system_error("no UDP socket can be made");
  setsockopt(file_, SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof(buffer_bytes));
  setsockopt(file_, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof(buffer_bytes));
  return {};
}

Status UdpPort::connect(const sockaddr_in& peer) {
  SPL_TRY(open());
  if (::connect(file_, reinterpret_cast<const sockaddr*>(&peer), sizeof(peer)) != 0) {
    return system_error(text("UDP to ", name_of_address(peer), " cannot be opened"));
  }
  return {};
}

Status UdpPort::bind(const sockaddr_in& own) {
  SPL_TRY(open());
  if (::bind(file_, reinterpret_cast<const sockaddr*>(&own), sizeof(own)) != 0) {
    return system_error(text("UDP at ", name_of_address(own), " cannot be opened"));
  }
  return {};
}

uint16_t UdpPort::own_port() const {
  sockaddr_in own{};
  socklen_t length = sizeof(own);
  getsockname(file_, reinterpret_cast<sockaddr*>(&own), &length);
  return ntohs(own.sin_port);
}

// True if a call that failed with this error may be tried again later. Also notes that the target has refused
// datagrams.
bool UdpPort::note_transient(int error) {
  if (error == ECONNREFUSED) refused_ = true;
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR || error == ENOBUFS || error == ECONNREFUSED;
}

// Sends datagrams as one, which the system or the card cuts (UDP_SEGMENT): the same bytes on the wire for a fraction of
// the time. Returns nothing if the system does not do that here.
std::optional<size_t> UdpPort::send_segmented(std::span<const Datagram> run) {
  std::array<iovec, 2 * batch> parts;
  for (size_t i = 0; i < run.size(); ++i) write_parts(run[i], &parts[2 * i]);
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(uint16_t))> control{};
  msghdr message{};
  write_target(run.front(), message);
  message.msg_iov = parts.data();
  message.msg_iovlen = 2 * run.size();
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const option = CMSG_FIRSTHDR(&message);
  option->cmsg_level = SOL_UDP;
  option->cmsg_type = UDP_SEGMENT;
  option->cmsg_len = CMSG_LEN(sizeof(uint16_t));
  const auto bytes = static_cast<uint16_t>(run.front().bytes());
  std::memcpy(CMSG_DATA(option), &bytes, sizeof(bytes));
  if (sendmsg(file_, &message, MSG_DONTWAIT) >= 0) return run.size();
  if (note_transient(errno)) return 0;
  can_segment_ = false;
  return std::nullopt;
}

Result<size_t> UdpPort::send(std::span<const Datagram> datagrams) {
  const size_t run = can_segment_ ? run_length(datagrams) : 0;
  if (run > 1) {
    if (const auto sent = send_segmented(datagrams.first(run))) return *sent;
  }
  std::array<mmsghdr, batch> messages{};
  std::array<std::array<iovec, 2>, batch> parts;
  const size_t count = std::min(datagrams.size(), batch);
  for (size_t i = 0; i < count; ++i) {
    write_parts(datagrams[i], parts[i].data());
    messages[i].msg_hdr.msg_iov = parts[i].data();
    messages[i].msg_hdr.msg_iovlen = parts[i].size();
    write_target(datagrams[i], messages[i].msg_hdr);
  }
  const int sent = sendmmsg(file_, messages.data(), static_cast<unsigned>(count), MSG_DONTWAIT);
  if (sent >= 0) return static_cast<size_t>(sent);
  if (note_transient(errno)) return size_t{0};
  return system_error("a UDP datagram cannot be sent");
}

Result<size_t> UdpPort::receive(Received& out) {
  std::array<mmsghdr, batch> messages{};
  std::array<iovec, batch> parts;
  for (size_t i = 0; i < batch; ++i) {
    parts[i] = {out.bytes[i].data(), out.bytes[i].size()};
    messages[i].msg_hdr.msg_iov = &parts[i];
    messages[i].msg_hdr.msg_iovlen = 1;
    messages[i].msg_hdr.msg_name = &out.from[i];
    messages[i].msg_hdr.msg_namelen = sizeof(out.from[i]);
  }
  const int got = recvmmsg(file_, messages.data(), batch, MSG_DONTWAIT, nullptr);
  if (got < 0) {
    if (note_transient(errno)) return size_t{0};
    return system_error("UDP datagrams cannot be received");
  }
  for (size_t i = 0; i < static_cast<size_t>(got); ++i) out.lengths[i] = messages[i].msg_len;
  return static_cast<size_t>(got);
}

void UdpPort::wait(Time longest, int wake, bool for_room) const {
  pollfd files[] = {{file_, static_cast<short>(for_room ? POLLIN | POLLOUT : POLLIN), 0}, {wake, POLLIN, 0}};
  const timespec limit = as_timespec(longest);
  ppoll(files, wake >= 0 ? 2 : 1, &limit, nullptr);
}

}  // namespace spinloom::slmp
