// Test profile - a complete profile for C++ tests: the numbers of data/nics/sc19-slingshot.toml.
#pragma once

#include "simulated/node/profile.hpp"

namespace spinloom::simulated {

inline ProfileFields test_profile_fields() {
  const auto n = [](int64_t value) { return ProfileValue(value); };
  const auto r = [](int64_t numerator, int64_t denominator) { return ProfileValue(Rational{numerator, denominator}); };
  return {
      {"link.byte_time", r(149, 4)},
      {"link.gap", n(0)},
      {"link.payload", n(2048)},
      {"link.switch", n(50'000)},
      {"link.wire", n(33'400)},
      {"match.header", n(30'000)},
      {"match.packet", n(2'000)},
      {"hpu.count", n(32)},
      {"hpu.clock", n(800'000'000)},
      {"hpu.core", std::string("a15")},
      {"hpu.memory_latency", n(1)},
      {"a15.rename_width", n(3)},
      {"a15.window", n(40)},
      {"a15.alus", n(2)},
      {"a15.multiply", n(3)},
      {"a15.divide", n(12)},
      {"a15.float_units", n(2)},
      {"a15.float_add", n(5)},
      {"a15.float_multiply", n(4)},
      {"a15.float_multiply_add", n(5)},
      {"a15.float_divide", n(9)},
      {"a15.float_root", n(33)},
      {"a15.float_compare", n(5)},
      {"a15.float_convert", n(5)},
      {"a15.float_move", n(3)},
      {"a15.load", n(2)},
      {"a15.front_end", n(7)},
      {"a15.predictor_entries", n(8192)},
      {"a15.device_load", n(4)},
      {"a15.device_store", n(1)},
      {"a15.device_answer", n(1)},
      {"a15.oldest", n(0)},
      {"memory.channel_byte_time", r(1'000'000'000'000, int64_t{50} << 30)},
      {"memory.channels_per_hpu", n(2)},
      {"memory.state_bytes", n(4 << 20)},
      {"memory.packet_buffer_bytes", n(4 << 20)},
      {"memory.outbound_packets", n(64)},
      {"scheduler.clock", n(1'000'000'000)},
      {"scheduler.dispatch_cycles", n(16)},
      {"scheduler.start_cycles", n(5)},
      {"scheduler.finish_cycles", n(2)},
      {"scheduler.vhpu_switch_cycles", n(0)},
      {"scheduler.messages", n(256)},
      {"pcie.byte_time", r(8 * 130 * 1000, 32 * 16 * 128)},
      {"pcie.latency", n(250'000)},
      {"pcie.write_payload", n(256)},
      {"pcie.write_overhead", n(24)},
      {"pcie.event_bytes", n(64)},
      {"host.clock", n(3'400'000'000)},
      {"host.memory_latency", n(64'000)},
      {"host.streamed_in_flight", n(16)},
      {"host.strided_in_flight", n(10)},
      {"host.scattered_in_flight", n(5)},
      {"host.refill_cycles", n(12)},
      {"host.memory_byte_time", r(1'000'000'000'000, 25'600'000'000)},
      {"host.line", n(64)},
      {"host.cache", n(8 << 20)},
      {"host.cache_ways", n(16)},
      {"host.mpitypes_vector_cycles", n(2)},
      {"host.mpitypes_list_cycles", n(8)},
      {"host.best_vector_cycles", n(2)},
      {"host.best_list_cycles", n(5)},
      {"host.segment_block_cycles", n(10)},
      {"host.command_latency", n(250'000)},
      {"host.call", n(65'000)},
      {"checkpoint.paper_bytes", n(612)},
      {"checkpoint.epsilon", r(1, 5)},
      {"iovec.entries", n(32)},
      {"iovec.refill", n(500'000)},
  };
}

inline Profile test_profile() { return build_profile(test_profile_fields()).value(); }

}  // namespace spinloom::simulated
