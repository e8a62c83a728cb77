#include "memory/gpu/pair_channel.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace spinloom::gpu {
namespace {

constexpr uint32_t frame_mark = 0x47504C53;  // "SLPG"

Error gone(const char* what) {
  return fail(Code::environment, "the other process of the pair has gone: its end of the channel is closed (", what,
              ")");
}

}  // namespace

Result<std::shared_ptr<PairChannel>> SocketChannel::make(int socket) {
  int type = 0;
  socklen_t bytes = sizeof type;
  if (getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &bytes) != 0) {
    return fail(Code::invalid, "descriptor ", socket, " is no socket (", std::strerror(errno),
                "): a pair takes a stream socket, such as a duplex multiprocessing.Pipe()");
  }
  if (type != SOCK_STREAM) {
    return fail(Code::invalid, "socket ", socket, " is no stream socket: a pair needs messages in order");
  }
  const int descriptor = fcntl(socket, F_DUPFD_CLOEXEC, 0);
  if (descriptor < 0) return fail(Code::environment, "a descriptor for socket ", socket, ": ", std::strerror(errno));
  return std::shared_ptr<PairChannel>(new SocketChannel(descriptor));
}

SocketChannel::~SocketChannel() { close(socket_); }

Result<bool> SocketChannel::ready(short events, int patience_ms) const {
  pollfd asked{socket_, events, 0};
  const int found = poll(&asked, 1, patience_ms);
  if (found < 0 && errno != EINTR) return gone(std::strerror(errno));
  return found > 0;
}

// Takes what is there of one message, without waiting, and never a byte behind it.
Status SocketChannel::take_in() {
  while (true) {
    const bool in_head = taken_ < sizeof head_;
    std::byte* const to = in_head ? head_ + taken_ : body_.data() + (taken_ - sizeof head_);
    const size_t wanted = in_head ? sizeof head_ - taken_ : sizeof head_ + body_.size() - taken_;
    const ssize_t got = wanted == 0 ? 0 : recv(socket_, to, wanted, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {};
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return gone(std::strerror(errno));
    if (got == 0 && wanted > 0) return gone("end of file");
    taken_ += static_cast<size_t>(got);
    if (taken_ < sizeof head_) continue;
    if (in_head) {
      uint32_t words[2];
      std::memcpy(words, head_, sizeof words);
      if (words[0] != frame_mark || words[1] > message_bytes_max) {
        return fail(Code::invalid,
                    "the channel of a pair holds bytes of somebody else: both processes must be in the "
                    "same call, and may use the channel only between moves");
      }
      body_.resize(words[1]);
    }
    if (taken_ < sizeof head_ + body_.size()) continue;
    arrived_.push_back(std::move(body_));
    body_.clear();
    taken_ = 0;
    return {};
  }
}

Status SocketChannel::send(std::span<const std::byte> message) {
  if (message.size() > message_bytes_max) return fail(Code::overflow, "a message of ", message.size(), " bytes");
  const uint32_t words[2] = {frame_mark, static_cast<uint32_t>(message.size())};
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(words)), message};
  for (std::span<const std::byte> part : parts) {
    while (!part.empty()) {
      const ssize_t put = ::send(socket_, part.data(), part.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (put >= 0) {
        part = part.subspan(static_cast<size_t>(put));
        continue;
      }
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) return gone(std::strerror(errno));
      SPL_ASSIGN(const bool moves, ready(POLLIN | POLLOUT, 1000));
      if (moves) SPL_TRY(take_in());
    }
  }
  return {};
}

Result<std::optional<PairMessage>> SocketChannel::receive(int patience_ms) {
  if (arrived_.empty()) SPL_TRY(take_in());
  if (arrived_.empty() && patience_ms > 0) {
    SPL_ASSIGN(const bool comes, ready(POLLIN, patience_ms));
    if (comes) SPL_TRY(take_in());
  }
  if (arrived_.empty()) return std::optional<PairMessage>();
  std::optional<PairMessage> first(std::move(arrived_.front()));
  arrived_.pop_front();
  return first;
}

}  // namespace spinloom::gpu
