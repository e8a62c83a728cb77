// Timing parameters - what a NIC profile says about the speed of a handler processor.
//
// Contract: the caller fills the fields from a profile and hands them to Core::create, which checks them. The defaults
//   of A15Parameters are the `a15` paragraph of the shipped profiles: the published simulator configuration of the
//   SC'17 and SC'19 papers. Units: cycles of the HPU unless the name says otherwise.
// Threads: plain values. Time: durations in HPU cycles; nobody here knows their length.
#pragma once

#include <array>
#include <cstdint>
#include <variant>

#include "base/result.hpp"
#include "nic/hpu/memory.hpp"

namespace spinloom::hpu {

// One cycle for each instruction: for the loopback and live drivers, where time does not matter.
struct FunctionalParameters {};

// An A15-class out-of-order pipeline as a dataflow model; timing_a15.hpp has the algebra.
struct A15Parameters {
  uint32_t rename_width = 3;   // instructions that enter the window in a cycle
  uint32_t window = 40;        // reorder buffer entries
  uint32_t retire_width = 8;   // instructions that leave in a cycle
  uint32_t alus = 2;           // integer units, pipelined
  uint32_t multipliers = 1;    // units for multiply and divide
  uint32_t float_units = 2;
  uint32_t load_units = 1;
  uint32_t store_units = 1;
  uint32_t alu_cycles = 1;
  uint32_t multiply_cycles = 3;  // pipelined
  uint32_t divide_cycles = 12;   // occupies its unit for the whole time
  uint32_t float_add_cycles = 5;
  uint32_t float_multiply_cycles = 4;
  uint32_t float_multiply_add_cycles = 5;
  uint32_t float_divide_cycles = 9;  // a division or a root occupies its unit for the whole time
  uint32_t float_root_cycles = 33;
  uint32_t float_compare_cycles = 5;  // minimum and maximum take this, too
  uint32_t float_convert_cycles = 5;
  uint32_t float_move_cycles = 3;  // moves between the register files, signs, classes
  uint32_t load_cycles = 2;      // time in the pipeline; the memory's latency is added
  uint32_t store_cycles = 2;     // the time from issue until the store may retire and its data can be forwarded
  // Latency of the memory that answers, by LatencyClass (the papers' k = 1).
  std::array<uint32_t, latency_class_count> memory_cycles{1, 1, 1, 1};
  uint32_t misaligned_cycles = 1;      // added when a plain access is not naturally aligned
  uint32_t front_end_cycles = 7;       // the time from a mispredicted branch's result to the next rename
  uint32_t predictor_entries = 8192;   // 2-bit counters, a power of two
  uint32_t indirect_entries = 2048;    // last targets of indirect jumps, a power of two
  uint32_t return_stack = 16;          // return addresses
  uint32_t device_store_cycles = 1;    // the time between two stores to the command window
  uint32_t device_answer_cycles = 1;   // the time until a store to the command window is answered
  uint32_t oldest_cycles = 0;          // the time from oldest to issue, for instructions that must be the oldest
  uint32_t device_load_cycles = 2;     // a load from the command window takes at least this
};

// An in-order core of the PULP family; timing_pulp.hpp has the algebra. The defaults are those of the public PsPIN
// RTL.
struct PulpParameters {
  uint32_t multiply_high_cycles = 5;  // mulh, mulhu, mulhsu; mul takes one
  uint32_t divide_cycles = 3;         // the leading zeros of the divisor are added
  uint32_t branch_taken_cycles = 3;
  uint32_t jump_cycles = 2;
  uint32_t straddle_cycles = 1;  // added when the target is a 32-bit instruction across two fetch words
  uint32_t load_use_cycles = 1;  // added when the next instruction uses a load's result
  uint32_t counter_cycles = 4;
  uint32_t device_cycles = 1;  // an access to the command window
  // From issue to the next issue, by LatencyClass: the cluster's memory, handler memory, packets, the image's data.
  std::array<uint32_t, latency_class_count> memory_cycles{1, 21, 1, 21};
  uint32_t atomic_near_cycles = 3;  // memory of one cycle: time until the result is there, or the next atomic issues
  uint32_t atomic_far_cycles = 6;   // added to the cycles of any other memory
};

using TimingParameters = std::variant<FunctionalParameters, A15Parameters, PulpParameters>;

// True for cores that have the F and D extensions.
[[nodiscard]] inline bool has_float(const TimingParameters& parameters) {
  return !std::holds_alternative<PulpParameters>(parameters);
}

// Checks that every field is within what the model can represent; an Error names the field, its value and the range.
[[nodiscard]] Status check(const TimingParameters& parameters);

}  // namespace spinloom::hpu
