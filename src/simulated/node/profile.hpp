// Profile - every number that a simulated NIC and host need, from a data/nics/*.toml file.
//
// The sections a15 and pulp belong to the core of that name; hpu.memory_latency and memory.channel* belong to a15. The
// section frame is optional.
//
// Contract: build_profile() takes the flat field names of the file ("match.header") with exact values
//   (integers, rationals, text) and refuses a missing, unknown or impossible one by name. Labels and
//   sources stay in the file; `spinloom info nics NAME` prints them.
// Invariants: (1) a Profile that exists is complete and consistent; (2) no floating point.
// Threads: plain value. Time: durations in ps, rates as rational ps per byte.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "base/result.hpp"
#include "base/units.hpp"

namespace spinloom::simulated {

struct Rational {
  int64_t numerator = 0;
  int64_t denominator = 1;
};

using ProfileValue = std::variant<int64_t, Rational, std::string>;
using ProfileFields = std::map<std::string, ProfileValue>;

// A memory of a clustered NIC: that of the handler's cluster, or the one that all clusters share.
enum class MemoryLevel : uint8_t { l1, l2 };

struct Profile {
  struct {
    Rate byte_time;
    Time gap;  // the least time between the first bytes of two packets
    int64_t payload = 0;
    Time switch_latency;
    Time wire;
  } link;
  struct {
    Time header;
    Time packet;
  } match;
  struct {
    int64_t count = 0;
    int64_t clock = 0;
    std::string core;
    int64_t memory_latency = 0;
  } hpu;
  struct {
    int64_t rename_width = 0, window = 0, alus = 0, multiply = 0, divide = 0, load = 0, front_end = 0,
            predictor_entries = 0, device_load = 0, device_store = 0, device_answer = 0, oldest = 0;
    int64_t float_units = 0, float_add = 0, float_multiply = 0, float_multiply_add = 0, float_divide = 0,
            float_root = 0, float_compare = 0, float_convert = 0, float_move = 0;
  } a15;
  struct {
    int64_t clusters = 1;
    // The core's timing, in cycles; timing_pulp.hpp has the algebra.
    int64_t multiply_high = 0, divide = 0, branch_taken = 0, jump = 0, straddle = 0, load_use = 0, counter = 0,
            device = 0;
    // Memory: cycles from issue to the next issue; atomics until the next memory operation.
    int64_t l1 = 0, l2_handler = 0, l2_packet = 0, atomic_l1 = 0, atomic_l2 = 0;
    int64_t l1_banks = 0, l1_bank_bytes = 0;  // L1 of one cluster
    int64_t l2_banks = 0, l2_bank_bytes = 0;  // handler memory in L2
    MemoryLevel constants = MemoryLevel::l2, state = MemoryLevel::l2, packets = MemoryLevel::l1;
    // Transfers: widths in bytes a cycle, the others in cycles; fabric.hpp has the algebra.
    int64_t port_width = 0, port_latency = 0, dma_width = 0, dma_setup = 0, dma_latency = 0, send_latency = 0;
    bool preloaded = false;  // set by experiments, not by the file: packets are in packet memory at time zero
  } pulp;
  struct {
    Rate channel_byte_time;
    int64_t channels_per_hpu = 0;
    int64_t state_bytes = 0;
    int64_t packet_buffer_bytes = 0;
    int64_t outbound_packets = 0;
  } memory;
  struct {
    int64_t clock = 0, dispatch_cycles = 0, start_cycles = 0, finish_cycles = 0, vhpu_switch_cycles = 0, messages = 0;
  } scheduler;
  struct {
    Rate byte_time;
    Time latency;
    int64_t write_payload = 0, write_overhead = 0, event_bytes = 0;
  } pcie;
  struct {
    int64_t clock = 0;
    Time memory_latency;
    int64_t streamed_in_flight = 0, strided_in_flight = 0, scattered_in_flight = 0;
    Rational refill_cycles;
    Rate memory_byte_time;
    int64_t line = 0, cache = 0, cache_ways = 0;
    Rational mpitypes_vector_cycles, mpitypes_list_cycles;  // cycles for a block
    Rational best_vector_cycles, best_list_cycles;
    Rational segment_block_cycles;
    Time command_latency;
    Time call;
  } host;
  struct {
    int64_t paper_bytes = 0;
    Rational epsilon;
  } checkpoint;
  struct {
    int64_t entries = 0;
    Time refill;
  } iovec;
  // Ethernet NICs that copy frames to packet memory: cycles for the smallest and the largest frame, linear between
  // them. A profile has the whole section or none.
  struct {
    int64_t bytes_min = 0, bytes_max = 0;
    int64_t ingress_min = 0, ingress_max = 0;
  } frame;

  // True if cores form clusters with memories of their own.
  [[nodiscard]] bool clustered() const { return hpu.core == "pulp"; }
  [[nodiscard]] bool has_ingress() const { return frame.bytes_max > 0; }
  // HPUs are dealt to clusters one by one, so the scheduler's lowest idle HPU is in the least occupied cluster.
  // PsPIN's scheduler sends a task whose home cluster is full to the same cluster.
  [[nodiscard]] uint32_t cluster_of(uint32_t index) const { return index % static_cast<uint32_t>(pulp.clusters); }
};

[[nodiscard]] Result<Profile> build_profile(const ProfileFields& fields);

}  // namespace spinloom::simulated
