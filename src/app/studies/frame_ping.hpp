// FramePing - the round trip of pings to a station with an Ethernet NIC, by the ways of the FPsPIN paper.
//
// Contract: a client at the far end sends `pings` requests, one after the other; each answer is compared byte for byte
//   with what the protocol asks for before its time counts.
//   T = far_stack_time + cable + (NIC, host) + cable + far_stack_time.
//   host: the frame goes to the host's stack, which answers after `host_answer_time`; an input, not a model.
//   nic: handlers of `image`, for example frame_ping.c.
//   both: handlers of frame_ping_host.c. The host's program reads its pages one after the other, `poll_time` each; when
//     it finds a request it computes the checksum of an ICMP message, `word_time` for each 16 bits, and answers after
//     `call_time`.
// Threads: any number of calls side by side. Time: modelled, in ps.
#pragma once

#include <string_view>
#include <vector>

#include "app/studies/setup.hpp"

namespace spinloom::app {

enum class PingWay : uint8_t { host, nic, both };
[[nodiscard]] Result<PingWay> ping_way_named(std::string_view name);

struct PingConfig : Setup {
  PingWay way = PingWay::nic;
  bool udp = true;
  std::string image;  // the image of the nic way; empty: frame_ping
  uint32_t payload_bytes = 16;  // the bytes behind the header of ICMP or UDP
  uint32_t pings = 20;
  Time far_stack_time{};  // the client's, each way
  Time host_answer_time{};  // the time from the frame in host memory to the answer at the NIC
  Time poll_time{};
  Time word_time{};
  Time call_time{};
};

struct PingResult {
  std::vector<int64_t> round_trips_ps;
  uint64_t handlers = 0;
  uint64_t handler_cycles = 0;
  // Cycles until a handler's first call, summed; by the nic way that call sends the answer.
  uint64_t to_send_cycles = 0;
};

[[nodiscard]] Result<PingResult> run_ping(const PingConfig& config);

}  // namespace spinloom::app
