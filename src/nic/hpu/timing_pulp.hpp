// PulpTiming - computes when each instruction issues in a PULP-class core: in order, one at a time, no store buffer.
//
// Contract: models the RI5CY core of PsPIN (public RTL, simulated; documented timing of the RI5CY and CV32E40P
//   manuals). For instruction i with sources s and the memory class k of its access:
//
//   issue_i = max(next_{i-1}, ready of s)
//   next_i  = issue_i + busy_i          ready of i's result = next_i + extra_i
//
//   busy (numbers are the defaults of PulpParameters):
//     ALU, mul 1; mulh, mulhu, mulhsu 5; division 3 + leading zeros of the divisor's magnitude; counter read 4;
//     branch not taken 1, taken 3; jump 2; a transfer to a 32-bit instruction that straddles a fetch word + 1;
//     load, store: memory_cycles[k] for each bus access, two of them when the access crosses a word;
//     command window: 1, the load of ISSUE until the driver answers.
//   extra: load_use_cycles after a load, a load from the command window and an atomic on far memory, otherwise 0;
//   jalr waits one cycle more for the result of the instruction right before it;
//   atomic: in a memory of one cycle it takes 1; its result comes, and the next atomic issues, atomic_near_cycles
//     later. Loads and stores are not held up. Any other memory blocks the core for memory_cycles[k] +
//     atomic_far_cycles.
//
// A core stalls for the whole access to a memory that is farther than the cluster's: there is no overlap to model.
//
// Approximations: the instruction cache is warm (a cold 16 B line costs 7 to 9 cycles on the RTL, once for the eight
// cores of a cluster); a signed division by a negative number counts the zeros of the magnitude; contention is the
// driver's (delay_shared), for the accesses that it asked to be stopped at.
//
// Invariants: 1. every call depends on earlier calls only, never on where slices were cut; 2. now() is the cycle at
//   which the next instruction issues, unless it waits for a source; 3. cycles = instructions + all stalls.
// Threads: one owner. Time: HPU cycles.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "nic/hpu/decode.hpp"
#include "nic/hpu/timing.hpp"
#include "nic/hpu/timing_stalls.hpp"

namespace spinloom::hpu {

class PulpTiming {
 public:
  static constexpr bool has_float = false;  // floating-point instructions are illegal

  explicit PulpTiming(const PulpParameters& parameters) : parameters_(parameters) {}

  void begin(uint64_t at_cycle) {
    next_ = at_cycle;
    atomic_free_ = at_cycle;
    previous_ = 0;
    ready_.fill(0);
  }

  [[nodiscard]] uint64_t now() const { return next_; }
  [[nodiscard]] uint64_t fetch_cycle() const { return next_; }
  [[nodiscard]] uint64_t end() const { return next_; }
  [[nodiscard]] const Stalls& stalls() const { return stalls_; }
  [[nodiscard]] uint64_t mispredicts() const { return 0; }

  void alu(const Op& op) { finish(op, 1, &Stalls::unit); }
  void multiply(const Op& op) {
    finish(op, op.code == OpCode::mul ? 1 : parameters_.multiply_high_cycles, &Stalls::unit);
  }
  void divide(const Op& op, uint32_t divisor) {
    const bool is_signed = op.code == OpCode::div || op.code == OpCode::rem;
    const uint32_t magnitude = is_signed && divisor >> 31 != 0 ? 0u - divisor : divisor;
    finish(op, parameters_.divide_cycles + static_cast<uint32_t>(std::countl_zero(magnitude)), &Stalls::unit);
  }
  void branch(const Op& op, uint32_t, bool taken) {
    finish(op, taken ? parameters_.branch_taken_cycles : 1, &Stalls::front_end);
  }
  void jump(const Op& op, uint32_t) { finish(op, parameters_.jump_cycles, &Stalls::front_end); }
  void jump_indirect(const Op& op, uint32_t, uint32_t) {
    if (op.rs1 != 0 && op.rs1 == previous_) wait_until(std::max(next_, ready_[op.rs1]) + 1, &Stalls::operand);
    finish(op, parameters_.jump_cycles, &Stalls::front_end);
  }
  // Called for the target of a branch or jump; `slot` is the target's halfword in the image.
  void arrive(const Op& target, uint32_t slot) {
    if (target.slots == 2 && slot % 2 != 0) [[unlikely]]
      wait_until(next_ + parameters_.straddle_cycles, &Stalls::front_end);
  }

  void load(const Op& op, uint32_t address, uint32_t bytes, LatencyClass latency_class, bool) {
    access(op, address, bytes, latency_class, parameters_.load_use_cycles);
  }
  // Private memory is the cluster's own memory, whose latency class this is.
  void store(const Op& op, uint32_t address, uint32_t bytes) {
    access(op, address, bytes, LatencyClass::scratchpad, 0);
  }
  void shared_load(const Op& op, uint32_t address, uint32_t bytes, LatencyClass latency_class) {
    access(op, address, bytes, latency_class, parameters_.load_use_cycles);
  }
  void shared_store(const Op& op, uint32_t address, uint32_t bytes, LatencyClass latency_class) {
    access(op, address, bytes, latency_class, 0);
  }

  void atomic(const Op& op, LatencyClass latency_class) {
    wait_for_sources(op);
    wait_until(atomic_free_, &Stalls::latency);
    const uint32_t memory = cycles_of(latency_class);
    if (memory > 1)
      return finish(op, memory + parameters_.atomic_far_cycles, &Stalls::latency, parameters_.load_use_cycles);
    const uint64_t back = next_ + parameters_.atomic_near_cycles;
    finish(op, 1, &Stalls::latency);
    ready_[op.rd] = back;
    atomic_free_ = back;
  }

  [[nodiscard]] uint64_t shared_at(const Op& op) const {
    return is_atomic(op.code) ? std::max(atomic_free_, operands(op)) : operands(op);
  }
  void delay_shared(const Op&, uint64_t at_cycle) { wait_until(at_cycle, &Stalls::device); }

  void device_store(const Op& op) {
    wait_for_sources(op);
    finish(op, parameters_.device_cycles, &Stalls::device);
  }
  [[nodiscard]] uint64_t device_load_at(const Op& op) const { return operands(op); }
  void device_load(const Op& op, uint64_t available_at, bool) {
    wait_for_sources(op);
    wait_until(available_at < parameters_.device_cycles ? 0 : available_at - parameters_.device_cycles,
               &Stalls::device);
    finish(op, parameters_.device_cycles, &Stalls::device, parameters_.load_use_cycles);
  }

  // Returns the cycle that the instruction reads.
  uint64_t read_counter(const Op& op) {
    const uint64_t cycle = next_;
    finish(op, parameters_.counter_cycles, &Stalls::unit);
    return cycle;
  }

 private:
  [[nodiscard]] uint64_t operands(const Op& op) const { return std::max({next_, ready_[op.rs1], ready_[op.rs2]}); }
  [[nodiscard]] uint32_t cycles_of(LatencyClass latency_class) const {
    return parameters_.memory_cycles[static_cast<size_t>(latency_class)];
  }

  void wait_until(uint64_t cycle, uint64_t Stalls::* cause) {
    if (cycle <= next_) return;
    stalls_.*cause += cycle - next_;
    next_ = cycle;
  }
  void wait_for_sources(const Op& op) { wait_until(operands(op), &Stalls::operand); }

  void access(const Op& op, uint32_t address, uint32_t bytes, LatencyClass latency_class, uint32_t extra) {
    wait_for_sources(op);
    const uint32_t accesses = address % 4 + bytes > 4 ? 2 : 1;
    finish(op, accesses * cycles_of(latency_class), &Stalls::latency, extra);
  }

  void finish(const Op& op, uint32_t busy, uint64_t Stalls::* cause, uint32_t extra = 0) {
    wait_for_sources(op);
    stalls_.*cause += busy - 1;
    next_ += busy;
    ready_[op.rd] = next_ + extra;
    previous_ = op.rd;
  }

  PulpParameters parameters_;
  uint64_t next_ = 0;  // the next instruction issues no earlier
  uint64_t atomic_free_ = 0;  // the next atomic issues no earlier
  uint8_t previous_ = 0;  // destination of the last instruction
  std::array<uint64_t, register_discard + 1> ready_{};
  Stalls stalls_;
};

}  // namespace spinloom::hpu
