// FunctionalTiming - one cycle for each instruction, for drivers that do not model time.
//
// Contract: the same calls as A15Timing (timing_a15.hpp explains them); the interpreter is a template on either.
// Invariants: now() is the count of executed instructions plus the waits that the driver's answers imposed.
// Threads: one owner. Time: a "cycle" is an instruction.
#pragma once

#include <algorithm>
#include <cstdint>

#include "nic/hpu/decode.hpp"
#include "nic/hpu/timing.hpp"
#include "nic/hpu/timing_stalls.hpp"

namespace spinloom::hpu {

class FunctionalTiming {
 public:
  static constexpr bool has_float = true;

  explicit FunctionalTiming(const FunctionalParameters&) {}

  void begin(uint64_t at_cycle) { now_ = at_cycle; }
  [[nodiscard]] uint64_t now() const { return now_; }
  [[nodiscard]] uint64_t fetch_cycle() const { return now_; }
  [[nodiscard]] uint64_t end() const { return now_; }
  [[nodiscard]] const Stalls& stalls() const { return stalls_; }
  [[nodiscard]] uint64_t mispredicts() const { return 0; }

  void alu(const Op&) { ++now_; }
  void multiply(const Op&) { ++now_; }
  void divide(const Op&, uint32_t) { ++now_; }
  void floating(const Op&) { ++now_; }
  void branch(const Op&, uint32_t, bool) { ++now_; }
  void jump(const Op&, uint32_t) { ++now_; }
  void jump_indirect(const Op&, uint32_t, uint32_t) { ++now_; }
  void arrive(const Op&, uint32_t) {}
  void load(const Op&, uint32_t, uint32_t, LatencyClass, bool) { ++now_; }
  void store(const Op&, uint32_t, uint32_t) { ++now_; }
  void shared_load(const Op&, uint32_t, uint32_t, LatencyClass) { ++now_; }
  void shared_store(const Op&, uint32_t, uint32_t, LatencyClass) { ++now_; }
  void atomic(const Op&, LatencyClass) { ++now_; }
  [[nodiscard]] uint64_t shared_at(const Op&) const { return now_; }
  void delay_shared(const Op&, uint64_t at_cycle) { now_ = std::max(now_, at_cycle); }
  void device_store(const Op&) { ++now_; }
  [[nodiscard]] uint64_t device_load_at(const Op&) const { return now_; }
  void device_load(const Op&, uint64_t available_at, bool) { now_ = std::max(now_ + 1, available_at); }
  uint64_t read_counter(const Op&) { return now_++; }

 private:
  uint64_t now_ = 0;
  Stalls stalls_;
};

}  // namespace spinloom::hpu
