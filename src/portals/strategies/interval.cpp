#include "portals/strategies/interval.hpp"

#include <algorithm>

namespace spinloom::strategies {
namespace {

uint64_t ceil_div(uint64_t value, uint64_t divisor) { return (value + divisor - 1) / divisor; }

}  // namespace

Result<Interval> checkpoint_interval(const IntervalInput& input) {
  SPL_ASSERT(input.packets > 0 && input.hpus > 0 && input.payload_bytes > 0, "an interval of nothing");
  SPL_ASSERT(input.packet_time.ps > 0, "packets that take no time");
  const auto packets = static_cast<int64_t>(input.packets);
  const auto hpus = std::min(static_cast<int64_t>(input.hpus), packets);
  const int64_t rounds = div_ceil(packets, hpus);
  const __int128 allowed =
      static_cast<__int128>(input.epsilon_numerator) * rounds * input.handler_time.ps / input.epsilon_denominator;

  // Largest j with T_pkt (1 + j (P - 1)) <= allowed; with one HPU there is no dependency at all.
  int64_t j = packets;
  if (hpus > 1) {
    const __int128 room = allowed / input.packet_time.ps - 1;
    j = room < 0 ? 0 : static_cast<int64_t>(std::min<__int128>(room / (hpus - 1), packets));
  }
  Interval interval;
  // Bytes of waiting packets in the buffer: min(T_PH k / T_pkt, j k). Only the second term depends on j.
  const __int128 lag_bytes =
      static_cast<__int128>(input.handler_time.ps) * static_cast<int64_t>(input.payload_bytes) / input.packet_time.ps;
  const bool handlers_lag = lag_bytes > static_cast<__int128>(input.packet_buffer_bytes);
  const auto buffered = static_cast<int64_t>(input.packet_buffer_bytes / input.payload_bytes);
  if (handlers_lag) j = std::min(j, buffered);
  j = std::max<int64_t>(j, 1);

  const uint64_t fitting = input.checkpoint_bytes == 0 ? input.packets : input.memory_bytes / input.checkpoint_bytes;
  if (fitting == 0) {
    return fail(Code::exhausted, "one checkpoint needs ", input.checkpoint_bytes, " B, ", input.memory_bytes,
                " B of NIC memory are left; enlarge memory.state_bytes");
  }
  if (ceil_div(input.packets, static_cast<uint64_t>(j)) > fitting) {
    j = static_cast<int64_t>(ceil_div(input.packets, fitting));
    interval.memory_decided = true;
  }
  interval.packets = static_cast<uint64_t>(j);
  interval.checkpoints = ceil_div(input.packets, interval.packets);
  interval.dependency = input.packet_time * (1 + j * (hpus - 1));
  interval.allowed = Time{static_cast<int64_t>(allowed)};
  interval.exceeds_epsilon = interval.dependency > interval.allowed && hpus > 1;
  interval.exceeds_packet_buffer = handlers_lag && j > std::max<int64_t>(buffered, 1);
  return interval;
}

}  // namespace spinloom::strategies
