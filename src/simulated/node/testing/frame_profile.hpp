// Test frame profile - the profile of an Ethernet NIC for C++ tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "simulated/node/testing/profile.hpp"

namespace spinloom::simulated {

// The numbers of data/nics/fpspin-vcu1525.toml, which has their sources.
inline ProfileFields board_fields() {
  ProfileFields fields;
  const auto n = [](int64_t value) { return ProfileValue(value); };
  for (const auto& [name, value] : test_profile_fields()) {
    const bool of_a15 = name.starts_with("a15.") || name.starts_with("memory.channel") || name == "hpu.memory_latency";
    if (!of_a15) fields[name] = value;
  }
  const std::pair<const char*, int64_t> numbers[] = {
      {"link.byte_time", 80},
      {"link.switch", 0},
      {"link.wire", 10'000},
      {"match.header", 100'000},
      {"match.packet", 100'000},
      {"hpu.count", 16},
      {"hpu.clock", 40'000'000},
      {"pulp.clusters", 2},
      {"pulp.multiply_high", 5},
      {"pulp.divide", 3},
      {"pulp.branch_taken", 3},
      {"pulp.jump", 2},
      {"pulp.straddle", 1},
      {"pulp.load_use", 1},
      {"pulp.counter", 4},
      {"pulp.device", 1},
      {"pulp.l1", 1},
      {"pulp.l2_handler", 21},
      {"pulp.l2_packet", 20},
      {"pulp.atomic_l1", 3},
      {"pulp.atomic_l2", 27},
      {"pulp.l1_banks", 64},
      {"pulp.l1_bank_bytes", 4},
      {"pulp.l2_banks", 32},
      {"pulp.l2_bank_bytes", 8},
      {"pulp.port_width", 64},
      {"pulp.port_latency", 4},
      {"pulp.dma_width", 64},
      {"pulp.dma_setup", 1},
      {"pulp.dma_latency", 27},
      {"pulp.send_latency", 12},
      {"memory.state_bytes", 1 << 20},
      {"memory.packet_buffer_bytes", 512 << 10},
      {"scheduler.clock", 40'000'000},
      {"scheduler.messages", 16},
      {"pcie.latency", 225'000},
      {"host.command_latency", 225'000},
      {"frame.bytes_min", 60},
      {"frame.bytes_max", 1514},
      {"frame.ingress_min", 8},
      {"frame.ingress_max", 70},
  };
  for (const auto& [name, value] : numbers) fields[name] = n(value);
  fields["hpu.core"] = std::string("pulp");
  fields["pulp.constants"] = std::string("L2");
  fields["pulp.state"] = std::string("L2");
  fields["pulp.packets"] = std::string("L1");
  fields["pcie.byte_time"] = ProfileValue(Rational{8125, 128});
  return fields;
}

inline Profile board_profile() {
  auto made = build_profile(board_fields());
  EXPECT_TRUE(made.ok()) << made.error().message;
  return *made;
}

}  // namespace spinloom::simulated
