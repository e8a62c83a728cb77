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

Error channel_closed(const char* what) {
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

Result<bool> SocketChannel::poll_socket(short events, int patience_ms) const {
  pollfd polled{socket_, events, 0};
  const int ready_count = poll(&polled, 1, patience_ms);
  if (ready_count < 0 && errno != EINTR) return channel_closed(std::strerror(errno));
  return ready_count > 0;
}

// Takes what is there of one message, without waiting, and never a byte behind it.
Status SocketChannel::read_available() {
  while (true) {
    const bool is_in_head = received_bytes_ < sizeof incoming_head_;
    std::byte* const to = is_in_head ? incoming_head_ + received_bytes_
                                     : incoming_body_.data() + (received_bytes_ - sizeof incoming_head_);
    const size_t wanted = is_in_head ? sizeof incoming_head_ - received_bytes_
                                     : sizeof incoming_head_ + incoming_body_.size() - received_bytes_;
    const ssize_t chunk_bytes = wanted == 0 ? 0 : recv(socket_, to, wanted, MSG_DONTWAIT);
    if (chunk_bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {};
    if (chunk_bytes < 0 && errno == EINTR) continue;
    if (chunk_bytes < 0) return channel_closed(std::strerror(errno));
    if (chunk_bytes == 0 && wanted > 0) return channel_closed("end of file");
    received_bytes_ += static_cast<size_t>(chunk_bytes);
    if (received_bytes_ < sizeof incoming_head_) continue;
    if (is_in_head) {
      uint32_t words[2];
      std::memcpy(words, incoming_head_, sizeof words);
      if (words[0] != frame_mark || words[1] > message_bytes_max) {
        return fail(Code::invalid,
                    "the channel of a pair holds bytes of somebody else: both processes must be in the "
                    "same call, and may use the channel only between moves");
      }
      incoming_body_.resize(words[1]);
    }
    if (received_bytes_ < sizeof incoming_head_ + incoming_body_.size()) continue;
    arrived_messages_.push_back(std::move(incoming_body_));
    incoming_body_.clear();
    received_bytes_ = 0;
    return {};
  }
}

Status SocketChannel::send(std::span<const std::byte> message) {
  if (message.size() > message_bytes_max) return fail(Code::overflow, "a message of ", message.size(), " bytes");
  const uint32_t words[2] = {frame_mark, static_cast<uint32_t>(message.size())};
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(words)), message};
  for (std::span<const std::byte> part : parts) {
    while (!part.empty()) {
      const ssize_t sent_bytes = ::send(socket_, part.data(), part.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent_bytes >= 0) {
        part = part.subspan(static_cast<size_t>(sent_bytes));
        continue;
      }
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) return channel_closed(std::strerror(errno));
      SPL_ASSIGN(const bool is_ready, poll_socket(POLLIN | POLLOUT, 1000));
      if (is_ready) SPL_TRY(read_available());
    }
  }
  return {};
}

Result<std::optional<PairMessage>> SocketChannel::receive(int patience_ms) {
  if (arrived_messages_.empty()) SPL_TRY(read_available());
  if (arrived_messages_.empty() && patience_ms > 0) {
    SPL_ASSIGN(const bool is_ready, poll_socket(POLLIN, patience_ms));
    if (is_ready) SPL_TRY(read_available());
  }
  if (arrived_messages_.empty()) return std::optional<PairMessage>();
  std::optional<PairMessage> first(std::move(arrived_messages_.front()));
  arrived_messages_.pop_front();
  return first;
}

}  // namespace spinloom::gpu
