// FrameSlmp - messages of a datatype over SLMP to a station whose NIC unpacks them into host memory.
//
// Contract: the sender has one thread for each of `messages` messages, which all start when the receiver's ready signal
//   is there. A thread sends while fewer than `window` packets are without acknowledgement: sending takes it
//   `send_time`, and the packet is on the cable after `far_stack_time` more. When it may not send it looks for
//   acknowledgements, and sleeps `sleep_time` when there are none. The first packet's acknowledgement is awaited alone.
//   After 2 s without one the thread gives up.
//   Receiver: handlers of `image`. The host computes in steps of `compute_time` and looks at its pages between them,
//   `poll_time` each, and answers each finished message after `call_time`. Without computing it looks all the time.
//   time_ps: from the ready signal's start to the end of the poll that has found the last message; `ready_time` is the
//   way of that signal. Bytes are compared before a time is given. Where a type writes a byte twice, the last in packed
//   order must be there; a window above 1 may break that order, and the comparison then fails.
//   A lost packet is not sent again: the result then counts it, and has no time.
// Threads: any number of calls side by side. Time: modelled, in ps.
#pragma once

#include <string>
#include <vector>

#include "app/studies/setup.hpp"
#include "memory/layout/type.hpp"
#include "portals/strategies/plan.hpp"

namespace spinloom::app {

struct SlmpConfig : Setup {
  layout::Type type;
  int64_t count = 1;
  uint32_t messages = 1;
  std::string image = "frame_ddt_segment";
  uint32_t window = 1;  // packets of one message without acknowledgement
  uint32_t packet_bytes = 1460;
  Time send_time{};
  Time far_stack_time{};
  Time sleep_time{};
  Time ready_time{};
  Time compute_time{};  // zero: the host only polls
  Time poll_time{};
  Time call_time{};
};

struct SlmpResult {
  int64_t time_ps = 0;  // zero: packets were lost
  uint64_t bytes = 0;  // packed, of all messages
  uint64_t packets = 0;
  uint64_t lost = 0;
  uint64_t sleeps = 0;
  uint64_t handlers = 0;  // payload handlers
  uint64_t handler_cycles = 0;
  uint64_t handler_cycles_max = 0;
  uint64_t pieces = 0;  // writes to host memory
  uint32_t slots_peak = 0;  // packet slots in use, seen as packets leave the sender
  uint64_t acks = 0;
  // The time when the second acknowledgement was at the sender's NIC; ack_last_ps is that of the last.
  int64_t ack_second_ps = 0;
  int64_t ack_last_ps = 0;
  int64_t compute_ps = 0;
  int64_t poll_ps = 0;
  uint64_t polls = 0;
  bool compared = false;
};

[[nodiscard]] Result<SlmpResult> run_slmp(const SlmpConfig& config);

// The data and sizes that a context of handlers/frame_ddt_*.c needs for `messages` messages. Each message has room of
// host_bytes in host memory; its first byte lies `guard` bytes behind the beginning of its room. The first room begins
// at `rooms_offset`. With `notices`, handlers write notices of finished messages instead of asking the host.
struct DdtContext {
  static constexpr uint32_t guard = 64;
  std::vector<uint8_t> constants;
  uint64_t state_bytes = 0;
  uint64_t rooms_offset = 0;
  uint64_t host_bytes = 0;
};
[[nodiscard]] Result<DdtContext> ddt_context(const strategies::Message& message, uint32_t messages,
                                             uint64_t rooms_offset, bool notices);

}  // namespace spinloom::app
