// SendMessage - a message over a UDP port by one or more threads: the driver of Sender.
//
// Contract: send_message() returns when every packet with SYN has been acknowledged, or with the first Error of one of
//   its threads or of `progress`. With one thread, or fewer than four packets, the caller's thread sends the whole
//   message. Otherwise the first packet goes alone, then each thread sends a run of the others with its part of the
//   window, then the last packet goes, as in FPsPIN's library. All threads share one UDP port, so that the receiver
//   sees one peer. A thread that reads an acknowledgement of another thread's packet hands it to that thread's Sender.
// Threads: several calls at once do not know each other. Time: host time.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <functional>
#include <span>

#include "base/result.hpp"
#include "ethernet/slmp/sender.hpp"

namespace spinloom::slmp {

enum class Polling : uint8_t { wait, original, busy };  // see spinloom/slmp.h

struct SendOptions {
  SenderConfig sender;  // each thread has an equal part of its window, rounded up
  Mode mode = Mode::segment;
  uint32_t payload_bytes = payload_bytes_max;
  uint32_t threads = 1;
  Polling polling = Polling::wait;
  // Called by the caller's thread, ten times a second at most; false ends the message.
  std::function<bool(uint64_t bytes, uint64_t total)> progress;

  static constexpr uint32_t threads_max = 256;
};

// An Error with Code::fault means that `progress` has ended the message.
[[nodiscard]] Status send_message(const SendOptions& options, const sockaddr_in& server, uint32_t message_id,
                                  std::span<const uint8_t> message, SenderCounts& counts);

}  // namespace spinloom::slmp
