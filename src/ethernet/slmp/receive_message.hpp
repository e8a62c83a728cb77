// ReceiveMessage - messages from a UDP port: the driver of Receiver.
//
// Contract: receive() gives the next whole message, or nothing when `timeout` is over. answer_until_quiet() goes on
//   taking and acknowledging packets until none has come for the time `quiet`, or until a message is whole.
// Threads: one owner. Time: host time.
#pragma once

#include <netinet/in.h>

#include <chrono>
#include <deque>
#include <memory>
#include <optional>

#include "base/result.hpp"
#include "ethernet/slmp/receiver.hpp"
#include "ethernet/slmp/udp_port.hpp"

namespace spinloom::slmp {

class ReceiveMessage {
 public:
  explicit ReceiveMessage(const ReceiverConfig& config)
      : receiver_(config), began_(std::chrono::steady_clock::now()), received_(std::make_unique<UdpPort::Received>()) {}

  [[nodiscard]] Status listen(const sockaddr_in& own) { return port_.bind(own); }
  [[nodiscard]] uint16_t own_port() const { return port_.own_port(); }

  [[nodiscard]] Result<std::optional<Receiver::Message>> receive(Time timeout);
  [[nodiscard]] Status answer_until_quiet(Time quiet);

  [[nodiscard]] const ReceiverCounts& counts() const { return receiver_.counts(); }

 private:
  [[nodiscard]] Time now() const;
  [[nodiscard]] Result<size_t> receive_batch();

  Receiver receiver_;
  UdpPort port_;
  std::chrono::steady_clock::time_point began_;
  std::unique_ptr<UdpPort::Received> received_;
  std::deque<Receiver::Message> complete_messages_;
};

}  // namespace spinloom::slmp
