// Delivery - one message from one process to another as an MPI library on NICs sends it: without asking, or asking
// first.
//
// Contract: deliver() sends one message of a layout to a receive of a layout (strategies::Send or AskingSend, Inbox),
//   and compares the destination with the oracle. The receive is posted before the message, or, with `late`, when the
//   message or its request has landed. It may be for any source. Sources: SC'17 sPIN paper, section 5.1; SC'19
//   datatypes paper, section 3.2.6.
// Invariants: (1) the same config gives the same result on every machine; (2) sent and received types have as many
//   bytes.
// Threads: pure. Time: modelled, in ps; what is prepared beforehand (handlers, the sender's entry) is in no time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/studies/setup.hpp"
#include "portals/strategies/inbox.hpp"
#include "portals/strategies/send.hpp"

namespace spinloom::app {

struct DeliveryConfig : Setup {
  std::string sent;  // text forms
  int64_t sent_count = 1;
  std::string received;
  int64_t received_count = 1;
  strategies::SendStrategy send = strategies::SendStrategy::pack;
  std::optional<strategies::Strategy> strategy;  // the receive's; none: its commit chooses
  bool asks = true;
  bool late = false;
  bool any_source = false;
};

struct DeliveryResult {
  int64_t size_bytes = 0;
  // The time from the sender's call (late: from the receive's post) until the program has the message.
  int64_t time_ps = 0;
  int64_t landing_ps = 0;  // late: from the sender's call until the message or its request is there; otherwise 0
  int64_t sent_ps = 0;  // the time from the sender's call until the sender may write its memory again
  int64_t sender_busy_ps = 0;  // work of the sender's CPU, from its call on
  int64_t receiver_busy_ps = 0;
  strategies::Completion completion;
  std::vector<uint8_t> destination;
};

[[nodiscard]] Result<DeliveryResult> deliver(const DeliveryConfig& config);

}  // namespace spinloom::app
