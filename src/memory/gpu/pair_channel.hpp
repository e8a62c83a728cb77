// PairChannel - short messages between the two processes of a pair: the caller's, or a socket's.
//
// Contract: messages arrive whole, in order, once. send() may wait until the peer has room. receive() gives the next
//   message, or nothing after at most about `patience_ms` (0: one look). An Error from either means that the peer
//   cannot be reached any more; but a message longer than `message_bytes_max` is an Error of send() alone.
//   SocketChannel speaks over a stream socket of the caller's, by a descriptor of its own, so that a number which the
//   caller closes is never another's here: a Unix socket pair, TCP, or what a duplex multiprocessing.Pipe() of Python
//   is. It reads its own messages and not a byte more, so that the caller may use the socket between moves. While it
//   waits for room it takes in what comes, so that two that send to each other both go on.
// Threads: one at a time. Time: host time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"

namespace spinloom::gpu {

using PairMessage = std::vector<std::byte>;

class PairChannel {
 public:
  static constexpr size_t message_bytes_max = size_t{1} << 30;

  PairChannel() = default;
  PairChannel(const PairChannel&) = delete;
  PairChannel& operator=(const PairChannel&) = delete;
  virtual ~PairChannel() = default;

  virtual Status send(std::span<const std::byte> message) = 0;
  virtual Result<std::optional<PairMessage>> receive(int patience_ms) = 0;
};

class SocketChannel : public PairChannel {
 public:
  static Result<std::shared_ptr<PairChannel>> make(int socket);
  ~SocketChannel() override;

  Status send(std::span<const std::byte> message) override;
  Result<std::optional<PairMessage>> receive(int patience_ms) override;

 private:
  explicit SocketChannel(int descriptor) : socket_(descriptor) {}
  Status read_available();
  Result<bool> poll_socket(short events, int patience_ms) const;

  int socket_;
  std::deque<PairMessage> arrived_messages_;
  std::byte incoming_head_[8] = {};  // the head of the message that is arriving
  PairMessage incoming_body_;
  size_t received_bytes_ = 0;  // bytes of head and body that have come
};

}  // namespace spinloom::gpu
